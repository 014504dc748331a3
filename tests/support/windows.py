"""Windows counted anew, the slow and plain way, from timelines; and what workers would publish of random jobs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from ettwatch_core import JobState, Published, Rules, apply, settle, snapshot
from ettwatch_core.ownership import Owners, parse_owners
from ettwatch_core.windows import MINUTE_US, Dim, Size, Sizes
from ettwatch_schemas import (
    AttemptSummary,
    AttemptsUpdate,
    Event,
    JobSummary,
    Segment,
    SegmentsUpdate,
    Window,
    component_of,
)
from ettwatch_sim import Delivery, Shape, random_jobs

COMPONENTS: Final = (
    "scheduling",
    "hardware_setup",
    "trainer_init",
    "pt2_compilation",
    "wasted_training",
    "shutdown",
)

OWNERS: Final = parse_owners(
    """
owners:
  scheduling: {team: capacity, contact: capacity@example.com}
  trainer_init: {team: trainers, contact: trainers@example.com}
  trainer_init.checkpoint_load:
    team: storage
    contact: storage@example.com
  pt2_compilation: {team: compilers, contact: compilers@example.com}
""",
    "owners.yaml",
)
OTHERS: Final = parse_owners(
    """
owners:
  scheduling: {team: storage, contact: capacity@example.com}
  wasted_training: {team: trainers, contact: trainers@example.com}
""",
    "others.yaml",
)


@dataclass(slots=True)
class Truth:
    """One job as the core tells it."""

    summary: JobSummary
    attempts: list[AttemptSummary]
    segments: list[Segment]


@dataclass(slots=True)
class Folded:
    """What a worker would publish of a job, by topic, in its order; and what is true at the end."""

    truth: Truth
    jobs: list[JobSummary] = field(default_factory=list)
    attempts: list[AttemptsUpdate] = field(default_factory=list)
    segments: list[SegmentsUpdate] = field(default_factory=list)


def fold(job: str, events: Sequence[Event], rules: Rules, now: int, dice: Random) -> Folded:
    """Fold the events of a job in their order, publish now and then, and as of `now` at the end."""
    state, published = JobState(job), Published()
    segments: list[Segment] = []
    attempts: list[AttemptSummary] = []
    out = Folded(Truth.__new__(Truth))

    def publish(clock: int | None) -> None:
        told = published.publication(snapshot(state, rules, clock))
        if told.summary is not None:
            out.jobs.append(told.summary)
        out.attempts += told.attempts
        out.segments += told.segments

    for event in events:
        apply(state, event, rules)
        settled = settle(state, rules)
        if settled is not None:
            published.settled(settled)
            segments += settled.segments
            attempts += settled.attempts
        if dice.random() < 0.15:
            if dice.random() < 0.1:
                published.start_over()
            publish(None if dice.random() < 0.5 else state.newest + dice.randrange(60_000_000))
    if dice.random() < 0.5:
        published.start_over()
    publish(now)
    snap = snapshot(state, rules, now)
    out.truth = Truth(
        snap.summary, sorted([*attempts, *snap.attempts], key=lambda a: a.attempt), [*segments, *snap.segments]
    )
    return out


def random_fleet(
    seed: int, count: int, rules: Rules, now: int, *, shape: Shape | None = None, delivery: Delivery | None = None
) -> list[Folded]:
    """Fold some random jobs, told as networks deliver them."""
    dice = Random(f"folded {seed}")
    told: dict[str, list[Event]] = {}
    for event in random_jobs(seed, count, shape=shape, delivery=delivery):
        if event.ts < now:
            told.setdefault(event.job, []).append(event)
    return [fold(job, events, rules, now, dice) for job, events in told.items()]


Message = tuple[str, JobSummary | AttemptsUpdate | SegmentsUpdate]
"""A topic, and what was published in it."""


def interleaved(dice: Random, jobs: Iterable[Folded], *, again: float = 0.1) -> Iterator[Message]:
    """Yield all messages: those of a job and topic in their order, some again later, at random beside all others."""
    queues: list[list[Message]] = []
    for job in jobs:
        queues += [[("jobs", m) for m in job.jobs], [("attempts", m) for m in job.attempts]]
        queues.append([("segments", m) for m in job.segments])
    queues = [queue for queue in queues if queue]
    past: list[list[Message]] = []
    while queues:
        queue = dice.choice(queues)
        message = queue.pop(0)
        if not queue:
            queues.remove(queue)
        yield message
        past.append([message])
        if dice.random() < again:
            # What was told before comes once more, after newer things: a worker that was cut off told it late.
            yield dice.choice(past)[0]


def group_of(summary: JobSummary) -> dict[str, str]:
    """Scope what the windows of a job are told apart."""
    return {"team": summary.team or "", "model": summary.model or "", "cluster": summary.cluster or ""}


def dims(truths: Iterable[Truth], owners: Owners) -> set[Dim]:
    """All dimensions of some jobs."""
    out = {Dim("fleet", "")}
    for truth in truths:
        group = group_of(truth.summary)
        out |= {Dim("team", group["team"]), Dim("model", group["model"]), Dim("cluster", group["cluster"])}
        for segment in truth.segments:
            if segment.stage != "effective_training":
                out.add(Dim("owner", owner_of(owners, segment.stage, truth.summary)))
    return out


def owner_of(owners: Owners, stage: str, summary: JobSummary) -> str:
    """The team that owns a stage of a job."""
    owner = owners.of(stage, summary.cluster, summary.model)
    return "" if owner is None else owner.team


def recount(truths: Sequence[Truth], dim: Dim, size: Size, end: int, owners: Owners) -> dict[str, Any]:
    """Count a window anew; end in minutes. Times to start and recover are all of them, sorted."""
    last, begin = end * MINUTE_US, (end - size.length) * MINUTE_US
    wall: dict[str, int] = {}
    gpu: dict[str, int] = {}
    base = base_gpu = nof = infra = preempted = 0
    times: dict[str, list[int]] = {"tts": [], "ttr": []}
    live: dict[str, int] = {}
    owner = dim.scope == "owner"
    for truth in truths:
        if dim.scope in ("team", "model", "cluster") and group_of(truth.summary)[dim.scope] != dim.name:
            continue
        for segment in truth.segments:
            inside = min(segment.end, last) - max(segment.start, begin)
            if inside <= 0:
                continue
            base, base_gpu = base + inside, base_gpu + inside * segment.gpus
            if owner and (
                segment.stage == "effective_training" or owner_of(owners, segment.stage, truth.summary) != dim.name
            ):
                continue
            wall[segment.stage] = wall.get(segment.stage, 0) + inside
            gpu[segment.stage] = gpu.get(segment.stage, 0) + inside * segment.gpus
        if owner:
            continue
        for attempt in truth.attempts:
            if attempt.first_batch is not None and begin <= attempt.first_batch < last:
                for what, seconds in (("tts", attempt.tts_s), ("ttr", attempt.ttr_s)):
                    if seconds is not None:
                        times[what].append(round(seconds * 1e6))
            if attempt.outcome in ("failed", "preempted") and begin <= attempt.end < last:
                nof += 1
                infra += attempt.cause not in ("user_code", "config")
                preempted += attempt.outcome == "preempted"
        status = status_at(truth, last)
        if status is not None:
            live[status] = live.get(status, 0) + 1
    effective, gpu_effective = wall.pop("effective_training", 0), gpu.pop("effective_training", 0)
    waited = sum(us for stage, us in gpu.items() if component_of(stage) == "scheduling")
    waited_wall = sum(us for stage, us in wall.items() if component_of(stage) == "scheduling")
    held = base_gpu - waited
    return {
        "e2e_s": base / 1e6,
        "lost_s": sum(wall.values()) / 1e6,
        "gpu_e2e_s": base_gpu / 1e6,
        "gpu_lost_s": sum(gpu.values()) / 1e6,
        "effective_s": None if owner else effective / 1e6,
        "gpu_effective_s": None if owner else gpu_effective / 1e6,
        "gpu_held_s": None if owner else held / 1e6,
        "gpu_waited_s": None if owner else waited / 1e6,
        "ett_pct": None if owner or not base_gpu else 100 * gpu_effective / base_gpu,
        "ett_pct_unweighted": None if owner or not base else 100 * effective / base,
        "lost_pct": 100 * sum(gpu.values()) / base_gpu if base_gpu else None,
        "components": {
            name: sum(us for stage, us in gpu.items() if component_of(stage) == name) / 1e6 for name in COMPONENTS
        },
        "stages": {stage: us / 1e6 for stage, us in gpu.items() if us},
        "nof": nof,
        "nof_infra": infra,
        "nof_preempted": preempted,
        "nof_per_1000_gpu_h": None if owner or held <= 0 else nof * 1000 * 3600 * 1_000_000 / held,
        "mtbf_s": None if owner or not nof else (base - waited_wall) / 1e6 / nof,
        "live": live,
        **{what: sorted(some) for what, some in times.items()},
    }


def status_at(truth: Truth, time: int) -> str | None:
    """How a job stands at a time (µs); None if it is not there."""
    found = [s for s in truth.segments if s.start <= time < s.end]
    if not found:
        return None
    first = min(truth.attempts, key=lambda a: a.attempt, default=None)
    if component_of(found[0].stage) == "scheduling":
        return "pending" if first is None or time < first.start else "recovering"
    own = next((a for a in truth.attempts if a.attempt == found[0].attempt), None)
    if own is not None and own.first_batch is not None and time >= own.first_batch:
        return "training"
    return "starting" if first is None or found[0].attempt == first.attempt else "recovering"


def compare(window: Window, counted: Mapping[str, Any]) -> None:
    """Assert that a window says what was counted: quantiles within 1 %, everything else exactly."""
    told = window.model_dump()
    for what in ("tts", "ttr"):
        times = counted[what]
        assert told[f"{what}_count"] == len(times), (window.scope, window.name, window.length, what)
        for per_cent in (50, 90, 99):
            value = told[f"{what}_p{per_cent}_s"]
            if not times:
                assert value is None
                continue
            true = times[-(-len(times) * per_cent // 100) - 1] / 1e6
            assert abs(value - true) <= 0.01 * true
    for name, value in counted.items():
        if name not in ("tts", "ttr"):
            assert told[name] == value, (window.scope, window.name, window.length, window.end, name, told[name], value)


def is_empty(counted: Mapping[str, Any]) -> bool:
    """Whether nothing at all happened in a window."""
    return not (counted["e2e_s"] or counted["tts"] or counted["ttr"] or counted["nof"] or counted["live"])


def all_ends(sizes: Sizes, upto: int) -> dict[str, range]:
    """The ends of all windows that are told, in minutes."""
    return {
        size.name: range(size.first_end(upto - sizes.correct), size.last_end(upto) + 1, size.step) for size in sizes.all
    }
