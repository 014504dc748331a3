"""One run of the whole pipeline under one fault, and its report."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from support.kafka import Cluster
from support.pipeline import Pipeline
from support.pipeline_compare import Comparison
from support.pipeline_faults import SESSION_S, TIMEOUT_S, Disturbance, Scene
from support.pipeline_feed import Feed, make_feed
from support.pipeline_old import OLD, old_version

__all__ = ["Size", "report", "run_fault"]

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run is.

    Attributes:
        jobs: Random jobs; 2 % more are long ones.
        feed_s: How long they are fed.
        rounds: How often the fault happens.
        pause_s: How long what is down stays down.
        drain_s: How long it may take until all is through.
        batch: The most events of one record.
    """

    jobs: int
    feed_s: float
    rounds: int
    pause_s: float
    drain_s: float
    batch: int = 10


@dataclass(slots=True)
class Run:
    """What came of a run; `old`: the older version that took part."""

    fault: Disturbance
    feed: Feed
    comparison: Comparison
    done: list[tuple[float, str]]
    seconds: float
    old: str | None


def run_fault(fault: Disturbance, cluster: Cluster, folder: Path, prefix: str, size: Size, seed: int) -> Run:
    """Feed a pipeline, disturb it, wait until all is through, and compare. The brokers are left as they are."""
    began = time.monotonic()
    old = old_version(folder / "old") if fault.old else None
    feed = make_feed(seed, size.jobs, long=max(1, size.jobs // 50), batch=size.batch, **fault.feed)
    with Pipeline(
        cluster.bootstrap,
        folder,
        prefix,
        replication=cluster.replication,
        worker_options=("--session-timeout", f"{SESSION_S}s", "--publish-every", "2s"),
        sink_options=("--timeout", str(TIMEOUT_S)),
        worker_environment=old,
    ) as pipeline:
        pipeline.house.flaky.delay_s = TIMEOUT_S + 1.0
        dice = Random(f"{fault.name} {seed}")
        moments = fault.moments(size.rounds, dice)
        feeder = pipeline.feed(feed, size.feed_s, moments)
        scene = Scene(pipeline, feeder, cluster, moments, size.pause_s, dice)
        fault.play(scene)
        comparison = pipeline.finish(feed, feeder, size.drain_s)
    return Run(fault, feed, comparison, scene.done, time.monotonic() - began, OLD if old else None)


def report(run: Run) -> dict[str, Any]:
    """Return a run as JSON; of many differences the first."""
    compared = asdict(run.comparison)
    differences = compared.pop("differences")
    return {
        "what": run.fault.what,
        "seconds": round(run.seconds, 1),
        "records_sent": len(run.feed.records),
        "events_sent": run.feed.sent,
        "bad_sent": run.feed.poison,
        **({"old_version": run.old or "the same as the new one"} if run.fault.old else {}),
        **compared,
        "differences": len(differences),
        "first_differences": differences[:_SHOWN],
        "done": [f"{at:.2f} s: {text}" for at, text in run.done],
    }
