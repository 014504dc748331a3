"""What the detector is given of a fleet that is told as facts: one stream for each scope and metric."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from ettwatch_monitor.alerts.detect import FLEET, Exposure, Failed, Rate, Sample, Stream, StreamKey, Times, in_order
from ettwatch_schemas import COMPONENTS, EFFECTIVE
from ettwatch_sim.facts import Fact, Failure, Hours, JobDone, Start

HOUR_US: Final = 3_600_000_000
OWNERS: Final[Mapping[str, str]] = {
    "scheduling": "capacity",
    "hardware_setup": "platform",
    "trainer_init": "trainer",
    "pt2_compilation": "compiler",
    "wasted_training": "reliability",
    "shutdown": "publishing",
}


def streams(facts: Iterable[Fact], begin: int, end: int) -> dict[StreamKey, Stream]:
    """Return the streams of a fleet from `begin` to `end`, in microseconds, each in order of time."""
    times: dict[StreamKey, list[Sample]] = defaultdict(list)
    failures: dict[StreamKey, list[Failed]] = defaultdict(list)
    hours: dict[StreamKey, np.ndarray] = defaultdict(lambda: np.zeros((end - begin) // HOUR_US))
    for fact in facts:
        if not begin <= fact.ts < end:
            continue
        scopes = ((("team", fact.team),), FLEET)
        if isinstance(fact, Start):
            of_start(fact, scopes, times)
        elif isinstance(fact, Failure):
            for scope in scopes:
                failures[StreamKey("nof", scope)].append(_failed(fact))
        elif isinstance(fact, Hours):
            held = sum(seconds for stage, seconds in fact.gpu_s.items() if not stage.startswith("scheduling"))
            for scope in scopes:
                hours[StreamKey("nof", scope)][(fact.ts - begin) // HOUR_US] += held / 3600
        else:
            of_job(fact, scopes, times)
    made: dict[StreamKey, Stream] = {key: Times(in_order(some, end), True) for key, some in times.items()}
    for key, held_hours in hours.items():
        made[key] = Rate(in_order(failures[key], end), Exposure(begin, held_hours, end), True)
    return made


def of_start(
    fact: Start, scopes: "tuple[tuple[tuple[str, str], ...], ...]", times: dict[StreamKey, list[Sample]]
) -> None:
    """Add what a start says: how long it took, and of that the compilation."""
    for scope in scopes:
        times[StreamKey("tts" if fact.first else "ttr", scope)].append(_sample(fact, fact.seconds, fact.attempt))
    compiled = sum(part for stage, part in fact.stages.items() if stage.startswith("pt2_compilation"))
    if compiled > 0:
        times[StreamKey("compile", scopes[0])].append(_sample(fact, compiled, fact.attempt))


def of_job(
    fact: JobDone, scopes: "tuple[tuple[tuple[str, str], ...], ...]", times: dict[StreamKey, list[Sample]]
) -> None:
    """Add what a job says at its end: the shares of the components, to its team and to their owners."""
    share = dict.fromkeys(COMPONENTS, 0.0)
    for stage, seconds in fact.stages.items():
        component = stage.partition(".")[0]
        if component != EFFECTIVE:
            share[component] += seconds / fact.e2e_s
    for scope in scopes:
        times[StreamKey("ett", scope)].append(_sample(fact, fact.effective_s / fact.e2e_s, 0))
    for component, value in share.items():
        times[StreamKey(f"share.{component}", scopes[0])].append(_sample(fact, value, 0))
        owner = (("owner", OWNERS[component]), ("component", component))
        times[StreamKey(f"part.{component}", owner)].append(_sample(fact, value, 0))


def _sample(fact: Start | JobDone, value: float, attempt: int) -> Sample:
    return Sample(
        ts=fact.ts,
        id=f"{fact.job}/{attempt}",
        job=fact.job,
        value=value,
        team=fact.team,
        model=fact.model,
        cluster=fact.cluster,
        gpus=fact.gpus,
        stages=fact.stages,
        host=fact.host if isinstance(fact, Start) else None,
        cache_hit=fact.cache_hit if isinstance(fact, Start) else None,
    )


def _failed(fact: Failure) -> Failed:
    return Failed(
        ts=fact.ts,
        id=f"{fact.job}/{fact.attempt}",
        job=fact.job,
        cause=fact.cause,
        team=fact.team,
        model=fact.model,
        cluster=fact.cluster,
        gpus=fact.gpus,
        host=fact.host,
    )
