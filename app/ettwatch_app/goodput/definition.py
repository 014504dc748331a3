"""Goodput as Google's ml-goodput-measurement defines it, of a timeline as ettwatch draws it.

Sources: ml_goodput_measurement/src/goodput.py (GoodputCalculator.get_job_goodput) and its README. What differs from
ETT% is explained, each by one example, in docs/goodput.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ettwatch_app.goodput.points import Point, advances
from ettwatch_schemas import AttemptSummary, JobSummary, Segment

_STEP_TIME: Final = frozenset(
    {
        "wasted_training",
        "wasted_training.data_stall",
        "wasted_training.hang",
        "wasted_training.no_progress",
        "wasted_training.rework",
    }
)
"""What is time of steps there: they know only when steps begin."""

_SAVE: Final = "wasted_training.checkpoint_save"


@dataclass(frozen=True, slots=True)
class Goodput:
    """Goodput of a job. Times are seconds; `total_s` is productive plus all badput.

    Attributes:
        goodput_pct: 100 × productive / total; None where the total is 0.
        total_s: From the start of the first attempt to the end of the job.
        productive_s: Steps that were kept, and what follows the last step of the job.
        badput_s: What the rest was spent on, by their names.
        disruptions: Attempts that trained and were followed by one that trains.
    """

    job: str
    goodput_pct: float | None
    total_s: float
    productive_s: float
    badput_s: dict[str, float]
    disruptions: int


def goodput(
    summary: JobSummary, attempts: Sequence[AttemptSummary], segments: Sequence[Segment], points: Sequence[Point]
) -> Goodput:
    """Return the goodput of a job.

    Args:
        summary: The job.
        attempts: Its attempts, by number.
        segments: Its timeline.
        points: The positions that were told (see points_of).
    """
    began = attempts[0].start if attempts else summary.t1
    total = summary.t1 - began
    trained = [attempt for attempt in attempts if attempt.trained]
    productive = 0.0
    bad = dict.fromkeys(("program_startup", "wasted_progress", "checkpoint_save", "custom_events"), 0.0)
    for index, attempt in enumerate(trained):
        following = trained[index + 1] if index + 1 < len(trained) else None
        kept_below = following.start_position if following is not None else None
        steps = advances(points, attempt)
        part = _steps(steps, kept_below, segments)
        productive += part.productive
        for name, us in (
            ("program_startup", part.surplus),
            ("wasted_progress", part.discarded),
            ("checkpoint_save", part.saves),
            ("custom_events", part.custom),
        ):
            bad[name] += us
        if following is not None and steps:
            # From the last step to the next start: the disruption itself.
            bad["infrastructure_recovery"] = bad.get("infrastructure_recovery", 0.0) + max(
                0, following.start - steps[-1].ts
            )
        elif steps:
            # When the last step ended they do not know: all up to the end of the job is theirs.
            productive += max(0, summary.t1 - steps[-1].ts)
    bad |= _startup(attempts, segments, began)
    bad["other"] = total - productive - sum(bad.values())
    return Goodput(
        job=summary.job,
        goodput_pct=100 * productive / total if total else None,
        total_s=total / 1e6,
        productive_s=productive / 1e6,
        badput_s={name: round(us / 1e6, 6) for name, us in bad.items()},
        disruptions=max(0, len(trained) - 1),
    )


@dataclass(slots=True)
class _Part:
    """What the steps of one attempt come to, in microseconds."""

    productive: float = 0.0
    surplus: float = 0.0
    discarded: float = 0.0
    saves: float = 0.0
    custom: float = 0.0


def _steps(steps: Sequence[Point], kept_below: int | None, segments: Sequence[Segment]) -> _Part:
    """Charge the gaps between the points where steps were told."""
    part = _Part()
    kept: list[tuple[float, int]] = []
    for before, point in pairwise(steps):
        saves, custom = _phases(segments, before.ts, point.ts)
        length = point.ts - before.ts - saves - custom
        share = _share(before.position, point.position, kept_below)
        part.saves += saves * share
        part.custom += custom * share
        # What is rolled back takes its saves with it; theirs charge those twice.
        part.discarded += (1 - share) * (point.ts - before.ts)
        kept.append((length * share, round((point.position - before.position) * share)))
    part.productive = sum(us for us, _ in kept)
    if len(kept) > 1 and kept[0][1]:
        rest = sum(positions for _, positions in kept[1:])
        if rest:
            usual = sum(us for us, _ in kept[1:]) / rest * kept[0][1]
            part.surplus = max(0.0, kept[0][0] - usual)
            part.productive -= part.surplus
    return part


def _share(low: int, high: int, kept_below: int | None) -> float:
    """Which part of the positions from `low` to `high` the next attempt did not have to do again."""
    if kept_below is None or kept_below >= high:
        return 1.0
    return max(0, kept_below - low) / (high - low)


def _phases(segments: Sequence[Segment], start: int, end: int) -> tuple[int, int]:
    """Microseconds of blocking saves, and of other phases that stand between steps."""
    saves = custom = 0
    for segment in segments:
        if segment.end <= start or segment.start >= end or not segment.stage.startswith("wasted_training."):
            continue
        length = min(segment.end, end) - max(segment.start, start)
        if segment.stage == _SAVE:
            saves += length
        elif segment.stage not in _STEP_TIME:
            custom += length
    return saves, custom


def _startup(attempts: Sequence[AttemptSummary], segments: Sequence[Segment], began: int) -> dict[str, float]:
    """Start-up by their names, of all attempts."""
    names = {
        "trainer_init.device_init": "tpu_initialization",
        "trainer_init.get_first_batch_data": "data_loading_sync",
        "trainer_init.checkpoint_load": "checkpoint_restore",
    }
    loops = {a.attempt: a.loop_start for a in attempts}
    found = dict.fromkeys(("tpu_initialization", "training_prep", "data_loading_sync", "checkpoint_restore"), 0.0)
    for segment in segments:
        loop = loops.get(segment.attempt)
        end = segment.end if loop is None else min(segment.end, loop)
        if segment.stage.partition(".")[0] == "trainer_init" and end > max(segment.start, began):
            found[names.get(segment.stage, "training_prep")] += end - max(segment.start, began)
    return found
