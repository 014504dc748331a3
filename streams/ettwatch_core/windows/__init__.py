"""Rolling windows over the fleet: signed sums of what jobs add to them, in two stages. Pure, told the time.

Stage 1, :class:`Source`, keeps the sums of one partition of the jobs; stage 2, :class:`Merger`, those of some
dimensions over all partitions, and makes the windows. Between them go parts that replace one another, so that nothing
is counted twice. docs/windows.md tells the whole.
"""

from ettwatch_core.windows.dims import FLEET, Dim, Group, dims_of, partition_of
from ettwatch_core.windows.histogram import bucket_of, middle_of, quantile
from ettwatch_core.windows.ledger import Entry, Ledger, LedgerError, Recovered, recover
from ettwatch_core.windows.memory import (
    dump_merger,
    dump_source,
    load_merger,
    load_source,
    read_places,
    write_places,
)
from ettwatch_core.windows.merge import Merger
from ettwatch_core.windows.parts import BadPart, Clock, Part, Places, Told, read_told, write_clock, write_parts
from ettwatch_core.windows.sizes import MINUTE_US, Size, Sizes, SizesError
from ettwatch_core.windows.source import Source

__all__ = [
    "FLEET",
    "MINUTE_US",
    "BadPart",
    "Clock",
    "Dim",
    "Entry",
    "Group",
    "Ledger",
    "LedgerError",
    "Merger",
    "Part",
    "Places",
    "Recovered",
    "Size",
    "Sizes",
    "SizesError",
    "Source",
    "Told",
    "bucket_of",
    "dims_of",
    "dump_merger",
    "dump_source",
    "load_merger",
    "load_source",
    "middle_of",
    "partition_of",
    "quantile",
    "read_places",
    "read_told",
    "recover",
    "write_clock",
    "write_parts",
    "write_places",
]
