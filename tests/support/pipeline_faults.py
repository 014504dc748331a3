"""Each fault that the pipeline has to survive: how it is run, how long, and on which feed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from support.flaky import Fault as Spoilt
from support.kafka import Cluster
from support.pipeline import Pipeline
from support.pipeline_feed import SHUFFLED
from support.pipeline_feeder import Feeder

__all__ = ["FAULTS", "SESSION_S", "TIMEOUT_S", "Disturbance", "Scene"]

SESSION_S: Final = 6
"""Session timeout of the workers, in seconds."""

TIMEOUT_S: Final = 2
"""How long the sink waits for ClickHouse, in seconds."""


@dataclass(slots=True)
class Scene:
    """Where a fault plays.

    Attributes:
        pipeline: What is disturbed.
        feeder: Sends meanwhile.
        cluster: The brokers.
        moments: Shares of the feed at which something happens; the feeder waits there.
        pause_s: How long what is down stays down.
        dice: For moments.
        done: What was done to whom, and when: seconds since the feed began.
    """

    pipeline: Pipeline
    feeder: Feeder
    cluster: Cluster
    moments: Sequence[float]
    pause_s: float
    dice: Random
    done: list[tuple[float, str]] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Note what is done now."""
        self.done.append((round(time.monotonic() - self.feeder.began, 2), text))


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One fault.

    Attributes:
        name: Short.
        what: In words.
        play: Disturbs the pipeline while the feed is sent; returns when all is in order again.
        times: How often something happens in each round.
        at: Shares of the feed at which something happens, where that is not left to chance.
        feed: More arguments of `make_feed`.
        brokers: How many it takes.
        old: The workers at the beginning are of an older version.
    """

    name: str
    what: str
    play: Callable[[Scene], None]
    times: int = 1
    at: tuple[float, ...] | None = None
    feed: Mapping[str, Any] = field(default_factory=dict)
    brokers: int = 1
    old: bool = False

    def moments(self, rounds: int, dice: Random) -> list[float]:
        """Return shares of the feed at which something happens: one in each of so many equal parts of its middle."""
        if self.at is not None:
            return list(self.at)
        count = rounds * self.times
        width = 0.7 / count
        return [0.1 + (i + 0.3 + 0.4 * dice.random()) * width for i in range(count)]


def _nothing(scene: Scene) -> None:
    """Let it run."""


def _worker_killed(scene: Scene) -> None:
    workers = scene.pipeline.workers
    for number, share in enumerate(scene.moments):
        worker = workers[number % len(workers)]
        scene.feeder.reach(share)
        scene.note(f"kill -9 {worker.name}")
        worker.kill()
        scene.feeder.go_on()
        time.sleep(scene.dice.uniform(0, scene.pause_s))
        scene.note(f"start {worker.name}")
        worker.start(ready=False)
    for worker in workers:
        worker.wait_ready()


def _sink_killed(scene: Scene) -> None:
    (sink,) = scene.pipeline.sinks
    flaky = scene.pipeline.house.flaky
    for number, share in enumerate(scene.moments):
        scene.feeder.reach(share)
        fault = (Spoilt.HELD_AFTER, Spoilt.HELD_BEFORE)[number % 2]
        with flaky.being(fault):
            scene.feeder.go_on()
            assert flaky.held.wait(120), "no insert came"
            scene.note(f"kill -9 {sink.name} in an insert ({fault.value})")
            sink.kill()
        time.sleep(scene.dice.uniform(0, scene.pause_s))
        scene.note(f"start {sink.name}")
        sink.start()


def _broker_restarted(scene: Scene) -> None:
    for share in scene.moments:
        scene.feeder.reach(share)
        scene.note("kill -9 the broker")
        scene.cluster.kill(0)
        scene.feeder.go_on()
        time.sleep(scene.pause_s)
        scene.cluster.start(0)
        scene.note("the broker serves again")


def _broker_lost(scene: Scene) -> None:
    (share,) = scene.moments
    scene.feeder.reach(share)
    lost = scene.dice.randrange(3)
    scene.note(f"kill -9 broker {lost} of 3, for good")
    scene.cluster.kill(lost)
    scene.feeder.go_on()


def _third_worker(scene: Scene) -> None:
    for share in scene.moments:
        scene.feeder.reach(share)
        scene.feeder.go_on()
        third = scene.pipeline.add_worker()
        scene.note(f"{third.name} joins")
        third.start()
        time.sleep(scene.pause_s)
        scene.note(f"{third.name} leaves")
        assert third.stop() == 0


def _worker_frozen(scene: Scene) -> None:
    for number, share in enumerate(scene.moments):
        worker = scene.pipeline.workers[number % 2]
        scene.feeder.reach(share)
        scene.note(f"SIGSTOP {worker.name}")
        worker.freeze()
        scene.feeder.go_on()
        time.sleep(2 * SESSION_S + scene.pause_s)
        scene.note(f"SIGCONT {worker.name}")
        worker.thaw()
    for worker in scene.pipeline.workers:
        worker.wait_ready()
    # Had it stood still while it sent, its successor would set that right by then.
    time.sleep(2 * SESSION_S)


def _clickhouse_down(scene: Scene) -> None:
    house = scene.pipeline.house
    for share in scene.moments:
        scene.feeder.reach(share)
        scene.note("kill -9 ClickHouse; nothing listens on its port")
        with house.flaky.being(Spoilt.DOWN):
            house.kill()
            scene.feeder.go_on()
            time.sleep(scene.pause_s)
            house.start()
        scene.note("ClickHouse serves again")


def _spoil(scene: Scene, *faults: Spoilt) -> None:
    flaky = scene.pipeline.house.flaky
    for number, share in enumerate(scene.moments):
        fault = faults[number % len(faults)]
        scene.feeder.reach(share)
        before = flaky.faults
        with flaky.being(fault):
            scene.note(f"inserts are spoilt: {fault.value}")
            scene.feeder.go_on()
            end = time.monotonic() + max(120.0, scene.pause_s)
            began = time.monotonic()
            while time.monotonic() < began + scene.pause_s or flaky.faults == before:
                assert time.monotonic() < end, "no insert came"
                time.sleep(0.05)
        scene.note(f"no longer: {flaky.faults - before} inserts were spoilt")


def _clickhouse_errors(scene: Scene) -> None:
    _spoil(scene, Spoilt.BUSY, Spoilt.BROKEN)


def _clickhouse_late(scene: Scene) -> None:
    _spoil(scene, Spoilt.LATE, Spoilt.LOST)


def _upgraded(scene: Scene) -> None:
    pipeline = scene.pipeline
    old = list(pipeline.workers)
    begin, middle = scene.moments
    scene.feeder.reach(begin)
    scene.feeder.go_on()
    new = [pipeline.add_worker() for _ in old]
    for worker in new:
        scene.note(f"{worker.name}, of the new version, joins")
        worker.start()
    scene.feeder.reach(middle)
    scene.feeder.go_on()
    for worker in old:
        scene.note(f"{worker.name}, of the old version, leaves")
        assert worker.stop() == 0


FAULTS: Final = (
    Disturbance("undisturbed", "nothing happens", _nothing, at=()),
    Disturbance("worker_killed", "kill -9 of a worker in the middle, started again", _worker_killed),
    Disturbance("sink_killed", "kill -9 of the sink in the middle of an insert, started again", _sink_killed),
    Disturbance("broker_restarted", "kill -9 of the only broker, started again", _broker_restarted),
    Disturbance("broker_lost", "kill -9 of one of three brokers, for good", _broker_lost, at=(0.4,), brokers=3),
    Disturbance("third_worker", "a third worker joins and leaves", _third_worker),
    Disturbance("worker_frozen", "a worker is stopped for longer than the session timeout", _worker_frozen),
    Disturbance("clickhouse_down", "kill -9 of ClickHouse, which comes back later", _clickhouse_down),
    Disturbance("clickhouse_errors", "ClickHouse answers inserts with errors for a while", _clickhouse_errors, times=2),
    Disturbance("clickhouse_late", "ClickHouse inserts, but its answer is late or lost", _clickhouse_late, times=2),
    Disturbance(
        "shuffled", "all events come twice, shuffled over an hour", _nothing, at=(), feed={"delivery": SHUFFLED}
    ),
    Disturbance("poison", "1 % of the messages are bad, of every sort", _nothing, at=(), feed={"poison": 0.01}),
    Disturbance(
        "upgraded",
        "workers of a new version join, then those of the old one leave",
        _upgraded,
        at=(0.25, 0.6),
        old=True,
    ),
)
"""All, each with a name of its own."""
