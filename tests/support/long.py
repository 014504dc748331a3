"""A job that runs for days."""

from random import Random

from ettwatch_schemas import (
    AttemptStarted,
    CheckpointDurable,
    Event,
    JobSubmitted,
    PhaseEnded,
    PhaseStarted,
    Progress,
    TrainingStarted,
)

SECOND = 1_000_000


def a_long_job(days: float, rng: Random, *, every_s: int = 15, broken: bool = False) -> list[Event]:
    """Build a job that reports every 15 s, saves every ten minutes, and says when a checkpoint is durable."""
    events: list[Event] = []
    ts = 1_790_000_000_000_000

    def add(cls: type, at: int, kind: str, **fields: object) -> None:
        key = f"{rng.getrandbits(128):032x}"
        events.append(cls(v=1, id=key, job="job", ts=at, kind=kind, **fields))

    add(JobSubmitted, ts, "job_submitted", team="ads", model="m", cluster="c", gpus=64)
    add(AttemptStarted, ts + 5 * SECOND, "attempt_started", attempt=0, gpus=64)
    ts += 60 * SECOND
    add(TrainingStarted, ts, "training_started", attempt=0, position=0, step=0, report_every_s=2 * every_s)
    if broken:  # a phase that nobody ever ends
        add(PhaseStarted, ts + SECOND, "phase_started", attempt=0, span="lost", phase="wasted_training.evaluation")
    end = ts + int(days * 86400) * SECOND
    position = wait = i = 0
    while ts < end:
        i += 1
        ts += every_s * SECOND + rng.randrange(-50_000, 50_000)
        position += rng.randrange(90_000, 110_000)
        wait += rng.randrange(SECOND)
        add(Progress, ts, "progress", attempt=0, position=position, step=40 * i, data_wait_us=wait)
        if i % 40 == 0:
            span = f"save-{i}"
            add(
                PhaseStarted,
                ts + SECOND,
                "phase_started",
                attempt=0,
                span=span,
                phase="wasted_training.checkpoint_save",
            )
            add(PhaseEnded, ts + 3 * SECOND, "phase_ended", attempt=0, span=span)
            add(CheckpointDurable, ts + 7 * SECOND, "checkpoint_durable", attempt=0, position=position, step=40 * i)
    return events
