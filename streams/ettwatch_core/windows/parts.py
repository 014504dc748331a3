"""What one partition of the jobs tells those who sum up: buckets of a dimension, as they are now. And its clock."""

import json
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from ettwatch_core.windows.amounts import Buckets
from ettwatch_core.windows.dims import Dim, dim_of

__all__ = ["BadPart", "Clock", "Part", "Places", "Told", "read_told", "write_clock", "write_parts"]

Places: TypeAlias = dict[Dim, dict[int, set[int]]]
"""Buckets by dimension and hour: the numbers of their first minutes."""

_V = 1


class BadPart(ValueError):
    """A record that cannot be read. One line."""


class Part(NamedTuple):
    """Buckets of one dimension and one hour. Each replaces what its source told of it before.

    Attributes:
        dim: The dimension.
        hour: Number of the hour since the Unix epoch.
        minutes: Of one bucket.
        buckets: Amounts; none where nothing is left.
    """

    dim: Dim
    hour: int
    minutes: int
    buckets: Buckets


class Clock(NamedTuple):
    """How far a source has told everything.

    Attributes:
        told: All windows that ended by then (minutes) are told; 0 where nothing is said of that.
        now: The source's clock (minutes): by it hours get longer buckets.
    """

    told: int
    now: int


class Told(NamedTuple):
    """A record of a source.

    Attributes:
        source: The partition of the jobs.
        epoch: Of the source's owner: what an earlier owner tells later counts for nothing.
        layout: For which windows it keeps its sums.
        parts: Buckets.
        clock: How far; None in a record of buckets.
    """

    source: int
    epoch: int
    layout: str
    parts: list[Part]
    clock: Clock | None


def write_parts(source: int, epoch: int, layout: str, parts: Iterable[Part]) -> bytes:
    """Return a record with buckets of one dimension."""
    rows = [[part.dim.scope, part.dim.name, part.hour, part.minutes, part.buckets] for part in parts]
    return _write({"v": _V, "s": source, "e": epoch, "l": layout, "p": rows})


def write_clock(source: int, epoch: int, layout: str, clock: Clock) -> bytes:
    """Return a record that says how far a source is."""
    return _write({"v": _V, "s": source, "e": epoch, "l": layout, "c": list(clock)})


def read_told(data: bytes) -> Told:
    """Return what a record says. Raises BadPart."""
    try:
        told = json.loads(data)
        if told["v"] != _V:
            raise BadPart(f"a part has the form {told['v']!r:.20}, not {_V}: use the newer ettwatch for all workers")
        clock = Clock(*map(int, told["c"])) if "c" in told else None
        parts = [
            Part(dim_of(by, name), int(hour), int(minutes), {int(at): dict(a) for at, a in buckets.items()})
            for by, name, hour, minutes, buckets in told.get("p", ())
        ]
        return Told(int(told["s"]), int(told["e"]), str(told["l"]), parts, clock)
    except BadPart:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadPart(f"a part cannot be read: {type(error).__name__}: {error}") from None


def _write(body: dict[str, object]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
