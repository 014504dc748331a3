"""Events and results as rows of the base tables. Times are integers in the unit of their column."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ettwatch_schemas import AttemptSummary, Event, Hour, JobSummary, PhaseKey, PhaseSpan, Segment, encode_event

__all__ = ["ATTEMPTS", "EVENTS", "JOBS", "PHASES", "SEGMENTS", "TIMES"]

Row: TypeAlias = tuple[object, ...]

EVENTS: Final = ("job", "ts", "id", "kind", "v", "attempt", "rank", "host", "source", "raw", "received", "canonical")

_VERSIONED: Final = ("version", "written")

_ATTEMPT_CONTENT: Final = (
    *("start", "end", "open", "outcome", "cause", "exit_code", "signal", "message", "trigger", "gpus", "world_size"),
    *("trained", "loop_start", "first_batch", "last_advance", "loop_end", "start_position", "end_position", "tts_us"),
    *("ttr_us", "recovery_us", "effective_us", "unsaved_us", "components_us", "stages_us", "hidden_us", "flags"),
)
ATTEMPT_KEY: Final = ("job", "attempt")
ATTEMPTS: Final = (*ATTEMPT_KEY, *_VERSIONED, "final", "gone", *_ATTEMPT_CONTENT)

_PHASE_CONTENT: Final = (*("end", "ranks", "container", "charged_us", "hidden_us", "last_rank", "behind_us", "open"),)
PHASE_KEY: Final = ("job", "attempt", "phase", "background", "of_rank", "start")
PHASES: Final = (*PHASE_KEY, *_VERSIONED, "final", "gone", *_PHASE_CONTENT)

SEGMENTS: Final = ("job", "cell", *_VERSIONED, "attempt", "stage", "start_us", "length_us", "gpus")

JOBS: Final = (
    *("job", *_VERSIONED, "rules_version", "team", "model", "cluster", "labels", "status", "attempts", "gpus"),
    *("t0", "t1", "e2e_us", "effective_us", "ett_pct", "tts_us", "ttr_us", "recovery_us", "nof", "nof_infra"),
    *("nof_preempted", "unsaved_us", "components_us", "stages_us", "hidden_us", "gpu_effective_s", "gpu_e2e_s"),
    *("gpu_held_s", "flags"),
)

TIMES: Final = frozenset({"start", "end", "loop_start", "first_batch", "last_advance", "loop_end"})
"""Columns of attempts and phases that are times in microseconds."""

_MAX_POSITION: Final = 2**64 - 1
_NO_ATTEMPT: Final[Row] = (
    *(0, 0, False, None, None, None, None, None, None, 0, None, False, None, None, None, None, None, None, None, None),
    *(0, 0, 0, {}, {}, {}, ()),
)
_NO_PHASE: Final[Row] = (0, 0, False, 0, 0, 0, 0, False)


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _opt_us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)


def _map_us(seconds: Mapping[str, float]) -> dict[str, int]:
    return {name: round(value * 1e6) for name, value in seconds.items()}


def _position(value: int | None) -> int | None:
    return None if value is None else min(value, _MAX_POSITION)


def event_row(event: Event, raw: bytes, received: int, *, known: bool = False) -> Row:
    """Return the row of an event.

    Args:
        event: The event.
        raw: Its JSON.
        received: When it was taken in (µs).
        known: It is told in this spelling only: to look for the one by which others are known costs 3 µs.
    """
    text = raw.decode("utf-8", "replace")
    e = event
    canonical = "" if known else _canonical(e, raw)
    return (e.job, e.ts, e.id, e.kind, e.v, e.attempt, e.rank, e.host, e.source, text, received, canonical)


def _canonical(event: Event, raw: bytes) -> str:
    """Return an event's content in the one spelling by which it is known; empty where it was told so."""
    try:
        content = encode_event(event)
    except ValueError:  # with its defaults it is too large: known as it was told
        return ""
    return "" if content == raw else content.decode()


def job_content(s: JobSummary) -> Row:
    """Return the columns of a job after the versions."""
    return (
        *(s.rules_version, s.team, s.model, s.cluster, dict(s.labels), s.status, s.attempts, s.gpus, s.t0, s.t1),
        *(_us(s.e2e_s), _us(s.effective_s), s.ett_pct, _opt_us(s.tts_s), [_us(x) for x in s.ttr_s]),
        *(_us(s.recovery_s), s.nof, s.nof_infra, s.nof_preempted, _us(s.unsaved_s), _map_us(s.components)),
        *(_map_us(s.stages), _map_us(s.hidden_s), s.gpu_effective_s, s.gpu_e2e_s, s.gpu_held_s, list(s.flags)),
    )


def job_row(job: str, version: int, written: int, content: Row) -> Row:
    """Return the row of a job."""
    return (job, version, written, *content)


def attempt_content(a: AttemptSummary) -> Row:
    """Return the columns of an attempt after `gone`."""
    return (
        *(a.start, a.end, a.open, a.outcome, a.cause, a.exit_code, a.signal, a.message, a.trigger, a.gpus),
        *(a.world_size, a.trained, a.loop_start, a.first_batch, a.last_advance, a.loop_end),
        *(_position(a.start_position), _position(a.end_position), _opt_us(a.tts_s), _opt_us(a.ttr_s)),
        *(_us(a.recovery_s), _us(a.effective_s), _us(a.unsaved_s), _map_us(a.components), _map_us(a.stages)),
        *(_map_us(a.hidden_s), list(a.flags)),
    )


def attempt_row(job: str, attempt: int, version: int, written: int, content: Row | None, *, final: bool) -> Row:
    """Return the row of an attempt; without content, one that says that it is gone."""
    if content is None:
        return (job, attempt, version, written, False, True, *_NO_ATTEMPT)
    return (job, attempt, version, written, final, False, *content)


def phase_content(s: PhaseSpan) -> Row:
    """Return the columns of a phase after `gone`."""
    return (s.end, s.ranks, s.container, s.charged, s.hidden, s.last_rank, s.behind, s.open)


def phase_row(job: str, key: PhaseKey, version: int, written: int, content: Row | None, *, final: bool) -> Row:
    """Return the row of a phase; without content, one that says that it is gone."""
    if content is None:
        return (job, *key, version, written, False, True, *_NO_PHASE)
    return (job, *key, version, written, final, False, *content)


def cell_row(job: str, cell: int, version: int, written: int, segments: Sequence[Segment]) -> Row:
    """Return the row of an hour.

    Args:
        job: The job.
        cell: Begin of the hour (µs).
        version: Of the summary.
        written: Number of the write.
        segments: Of that hour, cut to it; none if the hour is no more.
    """
    return hour_row(job, Hour(cell, list(segments)), version, written)


def hour_row(job: str, hour: Hour, version: int, written: int) -> Row:
    """Return the row of an hour.

    Args:
        job: The job.
        hour: All its segments; none if the hour is no more.
        version: Of the summary.
        written: Number of the write.
    """
    return (job, hour.cell // 1_000_000, version, written, *hour.columns)
