"""Every kind of file that can be imported, the most telling first."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ettwatch_sources.kinds import Kind
from ettwatch_sources.lines import as_utf8
from ettwatch_sources.logs import (
    acme,
    dlrover,
    mapped,
    megatron,
    mlgoodput,
    mllog,
    onelogger,
    philly,
    resiliency,
    torchelastic,
    torchtitan,
    torchtrace,
)
from ettwatch_sources.slurm import reader as slurm

_ALL: Final = (
    slurm.KIND,
    mllog.KIND,
    torchtrace.KIND,
    acme.KIND,
    philly.KIND,
    torchelastic.KIND,
    dlrover.KIND,
    onelogger.KIND,
    mlgoodput.KIND,
    resiliency.KIND,
    torchtitan.KIND,
    megatron.KIND,
    mapped.KIND,
)
KIND_NAMES: Final[Mapping[str, Kind]] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Name of a kind to the kind."""

HEAD: Final = 256 * 1024
"""How many bytes of a file's begin are looked at to tell its kind."""


def kind_of(head: bytes, name: str) -> Kind | None:
    """Return the kind of a file by its first bytes and its name; None where no kind knows it."""
    text = b"".join(as_utf8([head[:HEAD]])).decode("utf-8", "replace").lstrip("\ufeff\r\n\t ")
    return next((kind for kind in _ALL if kind.is_it(text, name)), None)
