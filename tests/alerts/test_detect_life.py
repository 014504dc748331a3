"""The detector on what the simulator says of a fleet: shared clusters, queues, storms, and one team made slower."""

import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from ettwatch_monitor.alerts.detect import METRICS, Detector, Incident, Sample, Stream, StreamKey
from ettwatch_monitor.alerts.detect.times import TimesTrack
from ettwatch_monitor.alerts.watch.explain import explain_times
from ettwatch_sim import Fact
from ettwatch_sim.life import Cluster, Injection, Scenario, Team, summaries
from support.regress import DAY, HOUR, rounds

ROOT = Path(__file__).resolve().parents[2]
DAYS, ONSET = 35, 28
STAGE = "trainer_init.get_first_batch_data"
RISE = Injection(name="rise", what="stage", stage=STAGE, factor=4, from_day=ONSET, team="ads")
TTS = StreamKey("tts", (("team", "ads"),))


def scenario(*injections: Injection) -> Scenario:
    return Scenario(
        days=float(DAYS),
        clusters=(Cluster(name="east", gpus=512, storms_per_week=2), Cluster(name="west", gpus=512)),
        teams=(
            Team(name="ads", models=("ctr-small",), jobs_per_day=20),
            Team(name="shop", models=("ctr-small", "ranker-small"), jobs_per_day=14),
            Team(name="mail", models=("ctr-small",), jobs_per_day=12, nightly=0.4),
        ),
        injections=injections,
        drain=False,
    )


@pytest.fixture(scope="module")
def streams() -> Callable[[Iterable[Fact], int, int], Mapping[StreamKey, Stream]]:
    """What makes streams of facts for the benchmark."""
    spec = importlib.util.spec_from_file_location("_detection_streams", ROOT / "benchmarks" / "_detection_streams.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    made: Callable[[Iterable[Fact], int, int], Mapping[StreamKey, Stream]] = module.streams
    return made


@pytest.mark.parametrize("seed", [1, 2])
def test_one_team_that_starts_slower_is_found_and_explained_and_nobody_else_is(
    streams: Callable[[Iterable[Fact], int, int], Mapping[StreamKey, Stream]], seed: int
) -> None:
    facts = list(summaries(seed, scenario(RISE)))
    begin = min(fact.ts for fact in facts) // DAY * DAY
    end = max(fact.ts for fact in facts) // HOUR * HOUR
    known = streams(facts, begin, end)
    since = begin + ONSET * DAY
    detector = Detector()
    _, opened, _ = rounds(known, range(begin + 14 * DAY, end, 12 * HOUR), detector=detector)
    told = [one for one in opened if TTS in (one.key, *one.also)]
    assert told, [str(one.key) for one in opened]
    assert since < told[0].found < since + 5 * DAY
    assert abs(told[0].onset - since) < 2 * DAY
    assert next(stage for stage, _ in _explained(detector, told[0], end)) == STAGE
    others = [one for one in opened if one not in told]
    assert not [str(one.key) for one in others if one.key.labels.get("team") in ("shop", "mail")]
    assert not [str(one.key) for one in others if one.found < since]


def _explained(detector: Detector, one: Incident, now: int) -> list[tuple[str, float]]:
    track = detector.track(TTS)
    assert isinstance(track, TimesTrack)
    before, after = track.sides(one.onset, now)
    sides: list[list[Sample]] = [list(before), list(after)]
    return [(part.name, part.share) for part in explain_times(METRICS["tts"], *sides) if part.kind == "stage"]
