"""What one hour of one job adds to the sums: kept small, worked out when it is needed. Pure.

Segments become runs: minutes after one another that have equally much of one stage. So an hour that is spent on one
thing is one run, however many messages told it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ettwatch_core.windows.amounts import GPU, LIVE, WALL, Buckets
from ettwatch_core.windows.sizes import HOUR, MINUTE_US
from ettwatch_schemas import Columns

__all__ = ["Cell", "Standing", "amounts_of", "coarser_cell", "live_of", "squeeze"]

_HOUR_US: Final = HOUR * MINUTE_US

_Run: TypeAlias = tuple[int, int, str, int, int]
"""First and last bucket, stage, GPUs, and microseconds in each of them."""

_Stand: TypeAlias = tuple[int, int, int, bool]
"""First and last bucket at whose begin an attempt was under way, the attempt, and whether it was a wait between two."""


class Cell(NamedTuple):
    """One hour of one job.

    Attributes:
        minutes: Of one bucket.
        runs: Its time.
        stands: What the job was at.
    """

    minutes: int
    runs: tuple[_Run, ...]
    stands: tuple[_Stand, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What has to be known of a job's attempts to say how it stood at some time.

    Attributes:
        first: Number of the first attempt; None while none is known.
        begin: When it began (µs).
        batches: Scope attempt, its first batch (µs), of those that had one.
    """

    first: int | None = None
    begin: int = 0
    batches: dict[int, int] = field(default_factory=dict)

    def at(self, time: int, attempt: int, *, waits: bool) -> str:
        """Return the status of the job at a time (µs)."""
        if waits:
            return "pending" if self.first is None or time < self.begin else "recovering"
        batch = self.batches.get(attempt)
        if batch is not None and time >= batch:
            return "training"
        return "starting" if self.first is None or attempt <= self.first else "recovering"


def squeeze(columns: Columns | None, minutes: int) -> Cell:
    """Return a cell.

    Args:
        columns: The segments of the hour, by time, disjoint; None if there are none.
        minutes: Of one bucket: 1, 5 or 60.
    """
    width = minutes * MINUTE_US
    sums: dict[tuple[str, int], dict[int, int]] = {}
    stands: list[_Stand] = []
    for attempt, stage, begin, length, gpus in () if columns is None else zip(*columns, strict=True):
        start, end = max(begin, 0), min(begin + length, _HOUR_US)
        if start >= end:
            continue
        of_stage = sums.setdefault((stage, gpus), {})
        first, last = start // width, (end - 1) // width
        for bucket in range(first, last + 1):
            inside = min(end, (bucket + 1) * width) - max(start, bucket * width)
            of_stage[bucket] = of_stage.get(bucket, 0) + inside
        begun = -(-start // width)
        if begun <= last:
            _stand(stands, (begun, last, attempt, stage.partition(".")[0] == "scheduling"))
    runs = [run for key, of_stage in sums.items() for run in _runs(key, of_stage)]
    return Cell(minutes, tuple(sorted(runs)), tuple(stands))


def _stand(stands: list[_Stand], new: _Stand) -> None:
    if stands and stands[-1][1] + 1 == new[0] and stands[-1][2:] == new[2:]:
        new = (stands.pop()[0], *new[1:])
    stands.append(new)


def _runs(key: tuple[str, int], of_stage: dict[int, int]) -> Iterable[_Run]:
    open_: _Run | None = None
    for bucket in sorted(of_stage):
        us = of_stage[bucket]
        if open_ is not None and open_[1] + 1 == bucket and open_[4] == us:
            open_ = (open_[0], bucket, *key, us)
            continue
        if open_ is not None:
            yield open_
        open_ = (bucket, bucket, *key, us)
    if open_ is not None:
        yield open_


def coarser_cell(cell: Cell, minutes: int) -> Cell:
    """Return a cell with longer buckets."""
    if minutes <= cell.minutes:
        return cell
    ratio = minutes // cell.minutes
    sums: dict[tuple[str, int], dict[int, int]] = {}
    for first, last, stage, gpus, us in cell.runs:
        of_stage = sums.setdefault((stage, gpus), {})
        for bucket in range(first, last + 1):
            of_stage[bucket // ratio] = of_stage.get(bucket // ratio, 0) + us
    stands: list[_Stand] = []
    for first, last, attempt, waits in cell.stands:
        begun, ended = -(-first // ratio), last // ratio
        if begun <= ended:
            _stand(stands, (begun, ended, attempt, waits))
    runs = [run for key, of_stage in sums.items() for run in _runs(key, of_stage)]
    return Cell(minutes, tuple(sorted(runs)), tuple(stands))


def amounts_of(cell: Cell) -> Buckets:
    """Return the time of a cell, by the first minute of each bucket."""
    out: Buckets = {}
    for first, last, stage, gpus, us in cell.runs:
        wall, gpu = WALL + stage, GPU + stage
        for bucket in range(first, last + 1):
            amounts = out.setdefault(bucket * cell.minutes, {})
            # One stage may be there with several numbers of GPUs.
            amounts[wall] = amounts.get(wall, 0) + us
            if gpus:
                amounts[gpu] = amounts.get(gpu, 0) + us * gpus
    return out


def live_of(hour: int, cell: Cell, standing: Standing) -> Buckets:
    """Return how the job stood at the begin of each bucket."""
    out: Buckets = {}
    zero = hour * _HOUR_US
    for first, last, attempt, waits in cell.stands:
        for bucket in range(first, last + 1):
            at = bucket * cell.minutes
            status = standing.at(zero + at * MINUTE_US, attempt, waits=waits)
            out[at] = {LIVE + status: 1}
    return out
