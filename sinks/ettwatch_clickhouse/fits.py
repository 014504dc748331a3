"""Whether what an update tells fits into the columns: a row that does not would stop all rows of its batch. No I/O."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from ettwatch_schemas import AttemptSummary, AttemptsUpdate, JobSummary, SegmentsUpdate, Update, UpdateError

__all__ = ["check_fits"]

_U32: Final = 2**32
_U64: Final = 2**64
_TIME: Final = 2**62
"""Bound of microseconds, and of seconds that become microseconds."""

_COUNTS: Final = ("attempt", "gpus", "world_size", "signal")
_TIMES: Final = ("start", "end", "exit_code", "loop_start", "first_batch", "last_advance", "loop_end")
_POSITIONS: Final = ("start_position", "end_position")
_SECONDS: Final = ("tts_s", "ttr_s", "recovery_s", "effective_s", "unsaved_s")
_JOB_COUNTS: Final = ("attempts", "gpus", "nof", "nof_infra", "nof_preempted")
_JOB_TIMES: Final = ("t0", "t1")
_JOB_SECONDS: Final = ("e2e_s", "effective_s", "tts_s", "recovery_s", "unsaved_s")


def check_fits(update: Update) -> None:
    """Return if all values of an update fit into their columns.

    Raises:
        UpdateError: One does not; the message names it.
    """
    wrong: str | None = None
    match update:
        case JobSummary():
            wrong = next(_job(update), None)
        case AttemptsUpdate():
            wrong = next(chain.from_iterable(_attempt(a) for a in chain(update.open, update.final)), None)
        case SegmentsUpdate():
            wrong = next(_segments(update), None)
        case _:
            pass  # the form of phases bounds every number
    if wrong is not None:
        raise UpdateError(f"{type(update).__name__}: {wrong} is too large or too small to be stored")


def _job(s: JobSummary) -> Iterator[str]:
    yield from _outside(s, _JOB_COUNTS, 0, _U32)
    yield from _outside(s, _JOB_TIMES, -_TIME, _TIME)
    yield from _outside(s, _JOB_SECONDS, -_TIME / 1e6, _TIME / 1e6)
    yield from _long(s)
    if not 0 <= s.version < _U64 // 2:
        yield "version"
    if any(abs(each) > _TIME / 1e6 for each in s.ttr_s):
        yield "ttr_s"


def _attempt(a: AttemptSummary) -> Iterator[str]:
    yield from _outside(a, _COUNTS, 0, _U32)
    yield from _outside(a, _TIMES, -_TIME, _TIME)
    yield from _outside(a, _POSITIONS, 0, float("inf"))  # what is too large is cut
    yield from _outside(a, _SECONDS, -_TIME / 1e6, _TIME / 1e6)
    yield from _long(a)


def _segments(update: SegmentsUpdate) -> Iterator[str]:
    for hour in update.hours:
        columns = hour.columns
        if max(columns.start, default=0) >= _U32 or max(columns.length, default=0) >= _U32:
            yield "a segment"


def _outside(model: object, names: Iterable[str], low: float, end: float) -> Iterator[str]:
    for name in names:
        value = getattr(model, name)
        if value is not None and not low <= value < end:
            yield name


def _long(model: JobSummary | AttemptSummary) -> Iterator[str]:
    for name in ("components", "stages", "hidden_s"):
        values: dict[str, float] = getattr(model, name)
        if any(abs(value) > _TIME / 1e6 for value in values.values()):
            yield name
