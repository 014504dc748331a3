"""The whole pipeline for tests: topics on a Kafka, workers and sinks as processes, ClickHouse behind a proxy.

with Pipeline(cluster.bootstrap, folder, "test-1") as pipeline:
    feeder = pipeline.feed(feed, seconds=10, stops=[0.5])
    feeder.reach(0.5)
    pipeline.workers[0].kill()
    feeder.go_on()
    pipeline.workers[0].start()
    assert pipeline.finish(feed, feeder).differences == []
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from ettwatch_clickhouse import migrate
from ettwatch_faust import names
from support.kafka_native import Reaper
from support.pipeline_compare import Comparison, compare_events, compare_replay, compare_rows
from support.pipeline_feed import Feed
from support.pipeline_feeder import Feeder
from support.pipeline_house import House
from support.pipeline_lag import Group, read_topic
from support.pipeline_letters import compare_letters
from support.pipeline_programs import COMMAND, Program, ProgramError, until
from support.pipeline_rows import read_all, read_events

__all__ = ["Pipeline"]

_QUIET_S: Final = 1.2
"""Two flushes."""

_PUBLISHED_S: Final = 180
"""Longer than any job waits for its publication."""


class Pipeline:
    """Everything from the topic of the events to the views. A context manager: at its end all processes are killed.

    Attributes:
        bootstrap: Addresses of the brokers.
        names: Of the topics.
        house: The ClickHouse.
        workers: The workers; all start with the pipeline, `add_worker` makes more.
        sinks: The sinks.
        folder: With the logs of all programs.
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        prefix: str,
        *,
        partitions: int = 4,
        replication: int = 1,
        workers: int = 2,
        sinks: int = 1,
        worker_options: Sequence[str] = (),
        sink_options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        worker_environment: Mapping[str, str] | None = None,
        start: bool = True,
    ) -> None:
        """Create the topics, apply the migrations, start all (if asked to), and wait until each is ready.

        `worker_environment` holds for the workers that are started here, not for those that are added.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.bootstrap = bootstrap
        self.folder = folder
        self.names = names(prefix)
        self._prefix = prefix
        self._shared = ["--bootstrap", bootstrap, "--prefix", prefix]
        self._counts = ["--partitions", str(partitions)]
        self._worker_options = worker_options
        self._environment = dict(environment or {})
        self._reaper = Reaper(folder / "reaped")
        self._feeders: list[Feeder] = []
        self.workers: list[Program] = []
        self.sinks: list[Program] = []
        self._house: House | None = None
        try:
            self._create_topics(replication)
            self._house = House(folder, self._reaper)
            self._migrate()
            for _ in range(workers):
                self.add_worker()
            for number in range(sinks):
                arguments = ["sink", *self._shared, *self._counts, "--clickhouse", self.house.url, *sink_options]
                self.sinks.append(Program(f"sink-{number}", folder, arguments, self._environment, self._reaper))
            if start:
                for worker in self.workers:
                    worker.start(ready=False, **(worker_environment or {}))
                for sink in self.sinks:
                    sink.start(ready=False)
                for program in self._programs():
                    program.wait_ready()
        except BaseException:
            self.close()
            raise

    @property
    def house(self) -> House:
        """The ClickHouse."""
        assert self._house is not None
        return self._house

    def add_worker(self, *options: str) -> Program:
        """Make one more worker, which is not started."""
        name = f"worker-{len(self.workers)}"
        arguments = ["worker", *self._shared, *self._counts]
        arguments += ["--state-dir", str(self.folder / name), *self._worker_options, *options]
        worker = Program(name, self.folder, arguments, self._environment, self._reaper)
        self.workers.append(worker)
        return worker

    def _programs(self) -> list[Program]:
        return [*self.workers, *self.sinks]

    def _create_topics(self, replication: int) -> None:
        options = [*self._shared, *self._counts, "--replication", str(replication), "--timeout", "60"]
        command = [str(COMMAND), "topics", "create", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
        if done.returncode:
            raise ProgramError(f"topics create ended with exit code {done.returncode}: {done.stdout}{done.stderr}")

    def _migrate(self) -> None:
        with contextlib.closing(self.house.store()) as store:
            migrate(store)

    def feed(self, feed: Feed, seconds: float | None = None, stops: Iterable[float] = ()) -> Feeder:
        """Begin to send a feed.

        Args:
            feed: What is sent.
            seconds: How long that takes; None: as fast as it goes.
            stops: Shares of the feed at which the feeder waits for `go_on()`.
        """
        feeder = Feeder(self.bootstrap, self.names.events, feed, seconds, stops)
        self._feeders.append(feeder)
        return feeder.start()

    def worker_group(self) -> Group:
        """Return the consumer group of the workers."""
        return Group(self.bootstrap, self.names.app, [self.names.events])

    def sink_group(self) -> Group:
        """Return the consumer group of the sinks."""
        topics = [self.names.jobs, self.names.attempts, self.names.segments, self.names.phases]
        return Group(self.bootstrap, f"{self._prefix}-sink", [*topics, self.names.accepted])

    def drained(self, seconds: float = 120) -> None:
        """Wait until the workers, then the sinks, have committed everything. Raises ProgramError."""
        self._drained(self.worker_group(), seconds)
        time.sleep(_QUIET_S)
        self._drained(self.worker_group(), seconds)
        self._drained(self.sink_group(), seconds)

    def drained_workers(self, seconds: float = 120) -> None:
        """Wait until the workers have committed everything. Raises ProgramError."""
        self._drained(self.worker_group(), seconds)

    def _published(self, feed: Feed, seconds: float) -> None:
        """Wait until the rows of each job are made from all its events: what only made progress may be told late."""

        def all_told() -> bool:
            rows = store.query("SELECT job, events FROM jobs").rows
            known = {str(job): events for job, events in rows if isinstance(events, int)}
            return all(known.get(job, 0) >= len(told) for job, told in feed.told.items())

        # Where that never comes the comparison says which.
        with contextlib.closing(self.house.store()) as store, contextlib.suppress(ProgramError):
            until("all events are in the rows", all_told, seconds, 0.5)

    def _drained(self, group: Group, seconds: float) -> None:
        def through() -> bool:
            for program in self._programs():
                assert not program.started or program.running()
            return group.behind() == 0

        with group:
            try:
                until(f"{group.group} has committed everything", through, seconds, 0.25)
            except ProgramError as error:
                tails = "\n".join(f"== {each.name}\n{each.tail(15)}" for each in self._programs())
                raise ProgramError(f"{error}; behind: {group.lag()}\n{tails}") from None

    def finish(self, feed: Feed, feeder: Feeder, seconds: float = 120) -> Comparison:
        """Wait until all is through, end workers and sinks in good order, and compare what is stored with the feed."""
        feeder.finish()
        self.drained(seconds)
        self._published(feed, _PUBLISHED_S)
        out = Comparison()
        self._end(self.workers, out)
        # What the workers said last is on its way still.
        self._drained(self.sink_group(), seconds)
        self._end(self.sinks, out)
        return self.compare(feed, feeder, out)

    def compare(self, feed: Feed, feeder: Feeder, out: Comparison) -> Comparison:
        """Compare what is stored with the feed. Nobody may be writing."""
        with contextlib.closing(self.house.store()) as store:
            stored, events = read_all(store), read_events(store)
        compare_rows(feed, stored, out)
        compare_events(feed, events, out)
        compare_replay(feed, stored, out)
        compare_letters(feeder.refused, read_topic(self.bootstrap, self.names.dlq), out)
        return out

    def _end(self, programs: Sequence[Program], out: Comparison) -> None:
        for program in programs:
            if program.started:
                assert program.running()
                code = program.stop()
                if code:
                    out.differ(f"{program.name} ended with exit code {code} when it was asked to\n{program.tail(10)}")

    def close(self) -> None:
        """End everything at once."""
        for feeder in self._feeders:
            feeder.close()
        for program in self._programs():
            program.close()
        if self._house is not None:
            self._house.close()
        self._reaper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
