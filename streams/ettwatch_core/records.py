"""Events as the fold keeps them: small tuples with only what the rules look at.

Every record begins with ``(kind, ts, attempt, rank)``; what follows depends on the kind (see the functions below).
Plain tuples, because a job holds thousands of them and most of the fold's time goes into making and reading them.
"""

from collections.abc import Callable
from typing import Any, Final

from ettwatch_schemas import (
    AttemptEnded,
    AttemptStarted,
    CheckpointDurable,
    Event,
    Heartbeat,
    JobEnded,
    JobSubmitted,
    PhaseEnded,
    PhaseStarted,
    Progress,
    TrainingEnded,
    TrainingStarted,
)

__all__ = ["NO_ATTEMPT", "Record", "record_of"]

Record = tuple[Any, ...]

PROGRESS: Final = 0  # (…, position, step, data_wait)
PHASE_START: Final = 1  # (…, span, phase, parent, background)
PHASE_END: Final = 2  # (…, span)
TRAINING_START: Final = 3  # (…, position, step, report_every)
TRAINING_END: Final = 4  # (…, position, step, data_wait)
DURABLE: Final = 5  # (…, position)
ATTEMPT_START: Final = 6  # (…, gpus, world_size, trigger)
ATTEMPT_END: Final = 7  # (…, trust, outcome, cause, exit_code, signal, message)
HEARTBEAT: Final = 8  # (…)
SUBMIT: Final = 9  # (…, team, model, cluster, gpus, eligible, labels)
JOB_END: Final = 10  # (…, outcome)

NO_ATTEMPT: Final = -1
"""Stands for the attempt in records that belong to the job as a whole."""

_TRUST: Final = {"trainer": 0, "launcher": 1, "scheduler": 2}


def _progress(e: Progress) -> Record:
    return (PROGRESS, e.ts, e.attempt, e.rank, e.position, e.step, e.data_wait_us)


def _phase_started(e: PhaseStarted) -> Record:
    return (PHASE_START, e.ts, e.attempt, e.rank, e.span, e.phase, e.parent, bool(e.background))


def _phase_ended(e: PhaseEnded) -> Record:
    return (PHASE_END, e.ts, e.attempt, e.rank, e.span)


def _training_started(e: TrainingStarted) -> Record:
    every = None if e.report_every_s is None else round(e.report_every_s * 1_000_000)
    return (TRAINING_START, e.ts, e.attempt, e.rank, e.position, e.step, every)


def _training_ended(e: TrainingEnded) -> Record:
    return (TRAINING_END, e.ts, e.attempt, e.rank, e.position, e.step, e.data_wait_us)


def _durable(e: CheckpointDurable) -> Record:
    return (DURABLE, e.ts, e.attempt, e.rank, e.position)


def _attempt_started(e: AttemptStarted) -> Record:
    return (ATTEMPT_START, e.ts, e.attempt, e.rank, e.gpus, e.world_size, e.trigger)


def _attempt_ended(e: AttemptEnded) -> Record:
    trust = _TRUST[e.source]
    return (ATTEMPT_END, e.ts, e.attempt, e.rank, trust, e.outcome, e.cause, e.exit_code, e.signal, e.message)


def _heartbeat(e: Heartbeat) -> Record:
    return (HEARTBEAT, e.ts, e.attempt, e.rank)


def _submitted(e: JobSubmitted) -> Record:
    labels = tuple(sorted((e.labels or {}).items()))
    return (SUBMIT, e.ts, NO_ATTEMPT, 0, e.team, e.model, e.cluster, e.gpus, e.eligible_ts, labels)


def _job_ended(e: JobEnded) -> Record:
    return (JOB_END, e.ts, NO_ATTEMPT, 0, e.outcome)


_MAKERS: Final[dict[type, Callable[[Any], Record]]] = {
    Progress: _progress,
    PhaseStarted: _phase_started,
    PhaseEnded: _phase_ended,
    TrainingStarted: _training_started,
    TrainingEnded: _training_ended,
    CheckpointDurable: _durable,
    AttemptStarted: _attempt_started,
    AttemptEnded: _attempt_ended,
    Heartbeat: _heartbeat,
    JobSubmitted: _submitted,
    JobEnded: _job_ended,
}


def record_of(event: Event) -> Record:
    """Return what the fold keeps of an event."""
    return _MAKERS[type(event)](event)


def content_key(record: Record) -> str:
    """Order contents told under one id: of two, the smaller key counts, whatever arrived first."""
    return repr(record)
