"""Both stages as lines of JSON and back: the whole of what they know, at one moment. Pure."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any

from ettwatch_core.ownership import Owners
from ettwatch_core.windows.cells import Cell
from ettwatch_core.windows.dims import Group, dim_of
from ettwatch_core.windows.jobs import Job, Mark, Told
from ettwatch_core.windows.merge import Ends, Merger
from ettwatch_core.windows.parts import Clock, Places
from ettwatch_core.windows.sheet import Sheet
from ettwatch_core.windows.sizes import Sizes
from ettwatch_core.windows.source import Source, pack_cell

__all__ = ["dump_merger", "dump_source", "load_merger", "load_source", "read_places", "write_places"]


def dump_source(source: Source) -> Iterator[bytes]:
    """Yield stage 1 as lines."""
    sums = source.sums
    yield _line("source", source.clock, source.refused, sorted(sums.owner_names), sums.owners_digest)
    for name, (version, hour) in source.gone.items():
        yield _line("gone", name, version, hour)
    for name, job in source.jobs.items():
        yield _line("job", name, *_job(job))
    for group, sheet in sums.sheets.items():
        for hour, minutes, data in sheet.packed():
            yield _line("sum", *group, hour, minutes, _text(data))
    if sums.changed:
        yield _line("changed", write_places(sums.changed))


def load_source(lines: Iterable[bytes], sizes: Sizes, owners: Owners) -> Source:
    """Return stage 1 as it was, for the same windows; owners may be others.

    Raises:
        ValueError, LookupError, TypeError: The lines are not those of `dump_source`.
    """
    source = Source(sizes, 0, owners)
    digest = source.sums.owners_digest
    for line in lines:
        kind, *row = json.loads(line)
        match kind:
            case "source":
                source.clock, source.refused, names, digest = row
                source.sums.owner_names = set(names)
            case "gone":
                source.gone[row[0]] = row[1], row[2]
            case "job":
                source.jobs[row[0]] = _read_job(row[1:])
            case "sum":
                sheet = source.sums.sheets.setdefault(Group(*row[:3]), Sheet())
                sheet.restore(row[3], row[4], b64decode(row[5]))
            case "changed":
                source.sums.redo(read_places(row[0]))
    if digest != source.sums.owners_digest:
        source.own(owners)
    return source


def dump_merger(merger: Merger) -> Iterator[bytes]:
    """Yield stage 2 as lines; its sums follow from those of the sources."""
    unheard = {name: sorted(ends) for name, ends in merger.unheard.items()}
    yield _line("merger", merger.clock, merger.refused, merger.upto, unheard)
    for number, (epoch, clock) in merger.clocks.items():
        yield _line("clock", number, epoch, *clock)
    for dim, of_dim in merger.sheets.items():
        for number, sheet in of_dim.items():
            for hour, minutes, data in sheet.packed():
                yield _line("sum", *dim, number, hour, minutes, _text(data))
    for dim, due in merger.due.items():
        yield _line("due", *dim, {name: list(ends.items()) for name, ends in due.items()})


def load_merger(lines: Iterable[bytes], sizes: Sizes, sources: int, epoch: int) -> Merger:
    """Return stage 2 as it was, for the same windows.

    Raises:
        ValueError, LookupError, TypeError: The lines are not those of `dump_merger`.
    """
    merger = Merger(sizes, sources, epoch)
    for line in lines:
        kind, *row = json.loads(line)
        match kind:
            case "merger":
                merger.clock, merger.refused, merger.upto, unheard = row
                merger.unheard = {name: set(ends) for name, ends in unheard.items()}
            case "clock":
                merger.clocks[row[0]] = row[1], Clock(row[2], row[3])
            case "sum":
                of_dim = merger.sheets.setdefault(dim_of(row[0], row[1]), {})
                of_dim.setdefault(row[2], Sheet()).restore(row[3], row[4], b64decode(row[5]))
            case "due":
                ends: Ends = {dim_of(row[0], row[1]): {name: dict(some) for name, some in row[2].items()}}
                merger.due.update(ends)
    merger.sum_up()
    return merger


def write_places(places: Places) -> list[Any]:
    """Return buckets by dimension as JSON has them; the minutes of an hour are the bits of a number."""
    return [
        [*dim, [[hour, sum(1 << at for at in minutes)] for hour, minutes in hours.items()]]
        for dim, hours in places.items()
    ]


def read_places(told: Iterable[Any]) -> Places:
    """Return what `write_places` wrote."""
    return {
        dim_of(by, name): {hour: {at for at in range(60) if bits >> at & 1} for hour, bits in hours}
        for by, name, hours in told
    }


def _job(job: Job) -> list[Any]:
    cells = [
        [hour, version, _text(pack_cell(held) if isinstance(held, Cell) else held)]
        for hour, (version, held) in job.cells.items()
    ]
    attempts = [[number, told.final, told.version, told.mark] for number, told in job.attempts.items()]
    whole, listed = job.whole
    return [job.version, job.group, job.closed, job.heard, job.bounds, [whole, sorted(listed)], attempts, cells]


def _read_job(row: list[Any]) -> Job:
    version, group, closed, heard, bounds, (whole, listed), attempts, cells = row
    return Job(
        version,
        None if group is None else Group(*group),
        closed,
        heard,
        {hour: (of_hour, b64decode(data)) for hour, of_hour, data in cells},
        tuple(bounds),
        {number: Told(final, v, None if mark is None else Mark(*mark)) for number, final, v, mark in attempts},
        (whole, frozenset(listed)),
    )


def _line(*row: Any) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _text(data: bytes) -> str:
    return b64encode(data).decode()
