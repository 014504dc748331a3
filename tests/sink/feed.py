"""What workers publish of some jobs, put on the topics of a real Kafka; and what the tables have to say then."""

from collections.abc import Iterable, Iterator

from click.testing import CliRunner
from kafka import KafkaProducer

from ettwatch_app.commands.topics import topics
from ettwatch_clickhouse import Store
from ettwatch_core import Published
from ettwatch_faust import Names, names
from ettwatch_schemas import Update, encode_event, encode_update
from support.clickhouse import read_truth, should_be
from support.story import Story

PARTITIONS = 4
LAST_S = 4_000
ROUNDS = (150, 220, 1_000, LAST_S)
"""Seconds after the begin of each job at which it is published."""


def create_topics(bootstrap: str, prefix: str, partitions: int = PARTITIONS) -> Names:
    words = ("--bootstrap", bootstrap, "--prefix", prefix, "--partitions", str(partitions), "--replication", "1")
    done = CliRunner().invoke(topics, ["create", *words, "--timeout", "60"])
    assert done.exit_code == 0, done.output
    return names(prefix)


def story(job: str) -> Story:
    told = Story(job).submitted().started(60).phase(70, 90, "trainer_init.device_init").trains(100)
    return told.progress(200, 5).phase(210, 215, "wasted_training.checkpoint_save").progress(900, 20)


class Feed:
    """Jobs by their names, each with its messages."""

    def __init__(self, bootstrap: str, called: Names, jobs: Iterable[str]) -> None:
        self.called = called
        self.stories = {job: story(job) for job in jobs}
        self.sent = 0
        self._published = {job: Published() for job in self.stories}
        self._events = {job: list(told.events) for job, told in self.stories.items()}
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20)

    def send(self, rounds: Iterable[int] = ROUNDS, times: int = 1) -> None:
        """Publish all jobs, once for each round; each record several times if asked for."""
        for second in rounds:
            for number, job in enumerate(self.stories):
                for topic, key, value in self._messages(job, second):
                    for _ in range(times):
                        self._producer.send(topic, value=value, key=key, partition=number % PARTITIONS)
                        self.sent += 1
        self._producer.flush()

    def put(self, topic: str, value: bytes, key: bytes | None = b"k", partition: int = 0) -> None:
        """Put one record of any kind on a topic."""
        self._producer.send(topic, value=value, key=key, partition=partition).get(90)
        self.sent += 1

    def close(self) -> None:
        self._producer.close()

    def _messages(self, job: str, second: int) -> Iterator[tuple[str, bytes | None, bytes]]:
        until = self.stories[job].events[0].ts + second * 1_000_000
        part = Story(job)
        part.events = [event for event in self.stories[job].events if event.ts <= until]
        new = [event for event in self._events[job] if event.ts <= until]
        self._events[job] = self._events[job][len(new) :]
        said = self._published[job].publication(part.at(now=second))
        updates: list[tuple[str, Update]] = [(self.called.attempts, each) for each in said.attempts]
        updates += [(self.called.phases, each) for each in said.phases]
        updates += [(self.called.segments, each) for each in said.segments]
        updates += [] if said.summary is None else [(self.called.jobs, said.summary)]
        yield from ((topic, job.encode(), encode_update(update)) for topic, update in updates)
        if new:
            yield self.called.accepted, None, b"\n".join(encode_event(event) for event in new)

    def missing(self, store: Store) -> list[str]:
        """Return the jobs of which the tables do not say what they have to."""
        wrong = []
        for job, told in self.stories.items():
            ids = store.query("SELECT id FROM events WHERE job = {job:String} ORDER BY id", {"job": job}).rows
            right = should_be(told.at(now=LAST_S))
            if read_truth(store, job) != right or [row[0] for row in ids] != sorted(e.id for e in told.events):
                wrong.append(job)
        return wrong
