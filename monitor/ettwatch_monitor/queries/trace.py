"""A job as a trace in the format of Chrome's tracing, which Perfetto opens too."""

from collections.abc import Iterator
from typing import Any, Final

from ettwatch_monitor.api.shapes import PhaseRow, Timeline

__all__ = ["trace"]

_CHARGED: Final = 1
"""The process of what the time is charged to; phases have one for each attempt after it."""


def trace(line: Timeline) -> dict[str, Any]:
    """Return the trace: what the time is charged to as one track, and for each attempt its phases and hidden work."""
    return {
        "displayTimeUnit": "ms",
        "otherData": {"job": line.job, "truncated": line.truncated},
        "traceEvents": [*_tracks(line), *_charged(line), *_phases(line), *_marks(line)],
    }


def _tracks(line: Timeline) -> Iterator[dict[str, Any]]:
    yield _named(_CHARGED, f"{line.job}: charged to")
    for attempt in sorted({s.attempt for s in line.segments} | {p.attempt for p in line.phases}):
        yield _named(_CHARGED + 1 + attempt, f"attempt {attempt}: phases as told")


def _named(process: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}


def _charged(line: Timeline) -> Iterator[dict[str, Any]]:
    for part in line.segments:
        yield {
            "ph": "X",
            "name": part.stage,
            "cat": part.component,
            "pid": _CHARGED,
            "tid": 0,
            "ts": part.start_us - line.t0_us,
            "dur": part.end_us - part.start_us,
            "args": {"attempt": part.attempt, "gpus": part.gpus},
        }


def _phases(line: Timeline) -> Iterator[dict[str, Any]]:
    """Phases that overlap lie on tracks of their own, unless one holds the other whole."""
    tracks: dict[int, list[list[int]]] = {}
    for phase in sorted(line.phases, key=lambda phase: (phase.start_us, -phase.end_us)):
        of_attempt = tracks.setdefault(phase.attempt, [])
        number = next((n for n, ends in enumerate(of_attempt) if _fits(ends, phase)), len(of_attempt))
        if number == len(of_attempt):
            of_attempt.append([])
        of_attempt[number].append(phase.end_us)
        yield {
            "ph": "X",
            "name": phase.phase,
            "cat": "hidden" if phase.background else phase.component,
            "pid": _CHARGED + 1 + phase.attempt,
            "tid": number,
            "ts": phase.start_us - line.t0_us,
            "dur": phase.end_us - phase.start_us,
            "args": {
                "ranks": phase.ranks,
                "last_rank": phase.last_rank,
                "behind_s": phase.behind_s,
                "charged_s": phase.charged_s,
                "hidden_s": phase.hidden_s,
                "background": phase.background,
                "open": phase.open,
            },
        }


def _fits(open_ends: list[int], phase: PhaseRow) -> bool:
    while open_ends and open_ends[-1] <= phase.start_us:
        open_ends.pop()
    return not open_ends or phase.end_us <= open_ends[-1]


def _marks(line: Timeline) -> Iterator[dict[str, Any]]:
    for mark in line.marks:
        yield {
            "ph": "i",
            "s": "p",
            "name": mark.label,
            "cat": mark.kind,
            "pid": _CHARGED,
            "tid": 0,
            "ts": mark.at_us - line.t0_us,
        }
