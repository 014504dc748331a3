"""`ettwatch dlq` on a real broker: what is listed, sent again and put away, and what becomes of it in a crash."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from ettwatch_app.commands.dlq import dlq
from ettwatch_app.dlq import Courier
from ettwatch_faust import Names, names
from ettwatch_schemas import DeadLetter, letter_headers
from support.kafka import PASSWORD, USER, Cluster
from support.patience import patiently

pytestmark = [
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning"),
]

T = 1_790_000_000_000_000
PARTITIONS = 3
EVIL = b'{"job":"\x1b]0;owned\x07","v":1}'


@dataclass(frozen=True)
class House:
    """The topics under one prefix."""

    kafka: str
    called: Names

    def make(self, *, letters: int = 1, events_bytes: int = 10_000_000) -> None:
        counts = {self.called.events: PARTITIONS, self.called.jobs: PARTITIONS, self.called.dlq: letters}
        # From the beginning: a broker takes a moment to know of what is changed.
        sizes = {name: events_bytes if name == self.called.events else 10_000_000 for name in counts}
        client = KafkaAdminClient(bootstrap_servers=self.kafka)
        try:
            client.create_topics(
                {
                    name: {
                        "num_partitions": count,
                        "replication_factor": 1,
                        "configs": {"max.message.bytes": str(sizes[name])},
                    }
                    for name, count in counts.items()
                },
                wait_for_metadata=True,
            )
        finally:
            client.close()

    def letter(self, offset: int, **other: Any) -> DeadLetter:
        usual = DeadLetter(
            value=b'{"v":1,"job":"a","n":%d}' % offset,
            key=b"a",
            code="missing_field",
            reason=f"id: is missing in {offset}; give one",
            field="id",
            fix="give one",
            topic=self.called.events,
            partition=1,
            offset=offset,
            index=None,
            time=T + offset,
            job="a",
            handled=None,
        )
        return replace(usual, **other)

    def put(self, letters: Iterable[DeadLetter], partition: int = 0) -> None:
        self.send(
            {"value": each.value, "key": each.key, "headers": letter_headers(each), "partition": partition}
            for each in letters
        )

    def send(self, records: Iterable[dict[str, Any]]) -> None:
        producer = KafkaProducer(bootstrap_servers=self.kafka, max_request_size=20_000_000)
        try:
            for future in [producer.send(self.called.dlq, **record) for record in records]:
                future.get(90)
        finally:
            producer.close(5)

    def read(self, topic: str) -> list[Any]:
        """All records of a topic, ordered by partition and offset."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.kafka, enable_auto_commit=False, isolation_level="read_committed"
        )
        try:
            parts = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
            consumer.assign(parts)
            consumer.seek_to_beginning(*parts)
            ends, found = consumer.end_offsets(parts), []
            stop = time.monotonic() + 90
            while any(consumer.position(part) < ends[part] for part in parts):
                assert time.monotonic() < stop
                for records in consumer.poll(timeout_ms=200).values():
                    found += records
        finally:
            consumer.close()
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def ask(self, *words: str, answer: str | None = None, **env: str) -> Result:
        told = {"ETTWATCH_KAFKA": self.kafka, "ETTWATCH_TOPIC_PREFIX": self.called.app.removesuffix("-worker")}
        patient = words if "--timeout" in words else (*words, "--timeout", "60")
        return CliRunner().invoke(dlq, patient, env=told | {"COLUMNS": "160"} | env, input=answer)

    def offsets(self, *words: str) -> list[int]:
        """Where the letters were read that `list` tells of."""
        done = self.ask("list", "--format", "json", *words)
        assert done.exit_code == 0, done.output
        return sorted(json.loads(line)["offset"] for line in done.stdout.splitlines())


@pytest.fixture
def house(kafka: str, prefix: str) -> House:
    return House(kafka, names(prefix))


@pytest.mark.kafka
@pytest.mark.slow
def test_list_shows_what_was_not_dealt_with(house: House) -> None:
    house.make()
    handled = house.letter(3, code="late")
    house.put(
        [
            house.letter(1, value=EVIL, job="\x1b[31mred", index=2),
            house.letter(1, value=EVIL, job="\x1b[31mred", index=2, time=T + 9),  # a double, after a crash
            house.letter(2, value=b"\xff\x00", key=None, code="not_utf8", field=None, job=None),
            handled,
            replace(handled, value=None, handled="dropped"),
        ]
    )
    table = house.ask("list")
    assert table.exit_code == 0
    assert "\x1b" not in table.stdout
    assert "\x07" not in table.stdout
    assert f"{house.called.events}/1@1[2]" in table.stdout
    assert "2 dead letters" in table.stdout
    assert "bytes that are not UTF-8" in table.stdout
    assert "late" not in table.stdout
    assert "3 dead letters, 1 of them dealt with" in house.ask("list", "--all").stdout

    first, second = map(json.loads, house.ask("list", "--format", "json").stdout.splitlines())
    assert first == {
        "time": T + 1,
        "code": "missing_field",
        "reason": "id: is missing in 1; give one",
        "field": "id",
        "fix": "give one",
        "topic": house.called.events,
        "partition": 1,
        "offset": 1,
        "index": 2,
        "job": "\x1b[31mred",
        "handled": None,
        "at": {"partition": 0, "offset": 0},
        "key": "a",
        "value": EVIL.decode(),
    }
    assert (second["key"], second["value_base64"]) == (None, "/wA=")
    assert house.offsets("--all") == [1, 2, 3]
    assert house.offsets("--code", "not_utf8", "--code", "late") == [2]
    assert house.offsets("--job", "\x1b[31mred") == [1]
    assert house.offsets("--since", str(T + 2)) == [2]
    assert house.offsets("--until", str(T + 2)) == [1]
    assert house.offsets("--limit", "1") == [1]
    assert house.offsets("--topic", house.called.jobs) == []
    assert house.offsets("--since", "1d") == house.offsets("--since", "2099-01-01T00:00:00Z") == []


@pytest.mark.kafka
@pytest.mark.slow
def test_messages_are_written_for_mending(house: House, tmp_path: Path) -> None:
    house.make()
    pretty = b'[\r\n {"job": "a"},\n 1, 2\n]'
    house.put(
        [
            house.letter(1, value=pretty, index=1),
            house.letter(1, value=pretty, index=2),
            house.letter(2, value=None, code="no_value"),
            house.letter(3, value=b"\xff"),
        ]
    )
    file = tmp_path / "bad.jsonl"
    done = house.ask("list", "--output", str(file))
    assert done.exit_code == 0
    assert f"wrote 2 messages to {file}" in done.stderr
    written = file.read_bytes()
    assert written == b'[   {"job": "a"},  1, 2 ]\n\xff\n'
    assert json.loads(written.splitlines()[0]) == json.loads(pretty)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert house.ask("list", "--format", "raw").stdout_bytes == written
    again = house.ask("list", "--output", str(file))
    assert (again.exit_code, file.read_bytes()) == (2, written)
    assert "is there already" in again.stderr


@pytest.mark.kafka
@pytest.mark.slow
def test_replay_sends_the_original_bytes_once_and_marks(house: House) -> None:
    house.make(letters=2)
    array = b'[{"job":"b"},{"job":"b"},{"job":"b"}]'
    house.put(
        [
            house.letter(1),
            house.letter(2, key=b"other", code="wrong_key"),
            house.letter(3, value=b"\xff", key=None, code="not_utf8"),
            house.letter(4, value=array, key=b"b", job="b", index=0),
            house.letter(4, value=array, key=b"b", job="b", index=1, code="late"),
            house.letter(4, value=array, key=b"b", job="b", index=2, code="late"),
        ],
        partition=1,
    )
    house.put([house.letter(5, topic=house.called.jobs, partition=2, key=b"z", code="bad_update", value=b"?")])

    would = house.ask("replay", "--all-letters", "--dry-run")
    assert (would.exit_code, "would send 5 messages again" in would.stdout) == (0, True)
    assert house.read(house.called.events) == []

    some = house.ask("replay", "--code", "late", "--yes")
    assert some.exit_code == 0, some.output
    assert "sent 1 message again, marked 3 letters as replayed" in some.stdout
    assert [(r.key, r.value) for r in house.read(house.called.events)] == [(b"b", array)]
    assert house.offsets() == [1, 2, 3, 5], "the neighbour in the array was sent with it"

    rest = house.ask("replay", "--all-letters", "--yes")
    assert rest.exit_code == 0, rest.output
    assert "sent 4 messages again, marked 4 letters as replayed" in rest.stdout
    sent = house.read(house.called.events)
    assert sorted((r.key or b"", r.value) for r in sent) == [
        (b"", b"\xff"),
        (b"a", b'{"v":1,"job":"a","n":1}'),
        (b"a", b'{"v":1,"job":"a","n":2}'),
        (b"b", array),
    ]
    assert len({r.partition for r in sent if r.key == b"a"}) == 1
    assert [r.partition for r in sent if r.key is None] == [1]
    assert [(r.partition, r.key, r.value) for r in house.read(house.called.jobs)] == [(2, b"z", b"?")]
    assert house.offsets() == []
    assert house.offsets("--all") == [1, 2, 3, 4, 4, 4, 5]

    again = house.ask("replay", "--all-letters", "--yes")
    assert (again.exit_code, "nothing to do" in again.stdout) == (0, True)
    assert len(house.read(house.called.events)) == 4
    assert not [r for r in house.read(house.called.dlq) if r.value is None and not r.headers]


@pytest.mark.kafka
@pytest.mark.slow
def test_drop_marks_and_sends_nothing(house: House) -> None:
    house.make()
    house.put([house.letter(n) for n in (1, 2, 3)])
    done = house.ask("drop", "--since", str(T + 2), "--yes")
    assert (done.exit_code, "marked 2 letters as dropped" in done.stdout) == (0, True)
    assert house.offsets() == [1]
    assert house.read(house.called.events) == []
    handled = [
        json.loads(line)["handled"] for line in house.ask("list", "--all", "--format", "json").stdout.splitlines()
    ]
    assert handled == [None, "dropped", "dropped"]


@pytest.mark.kafka
@pytest.mark.slow
def test_it_asks(house: House) -> None:
    house.make()
    house.put([house.letter(1)])
    nobody = house.ask("replay", "--all-letters")
    assert (nobody.exit_code, "nobody answers" in nobody.stderr) == (2, True)
    no = house.ask("replay", "--all-letters", answer="n\n")
    assert (no.exit_code, "nothing was done" in no.stdout) == (0, True)
    assert "Send 1 message again?" in no.stderr
    assert house.read(house.called.events) == []
    yes = house.ask("replay", "--all-letters", answer="y\n")
    assert yes.exit_code == 0
    assert len(house.read(house.called.events)) == 1


@pytest.mark.kafka
@pytest.mark.slow
def test_records_that_are_no_letters_and_gaps_do_not_hold_it_up(house: House) -> None:
    house.make(letters=2)
    house.put([house.letter(1), house.letter(2)])
    house.send([{"value": b"hello", "partition": 0}])
    producer = KafkaProducer(bootstrap_servers=house.kafka, transactional_id=house.called.app)
    producer.init_transactions()
    producer.begin_transaction()
    letter = house.letter(3)
    producer.send(house.called.dlq, letter.value, key=letter.key, headers=letter_headers(letter), partition=0).get(30)
    producer.abort_transaction()
    producer.close(5)
    admin = KafkaAdminClient(bootstrap_servers=house.kafka)
    admin.delete_records({TopicPartition(house.called.dlq, 0): 1})
    admin.close()

    begun = time.monotonic()
    done = house.ask("list", "--format", "json", "--timeout", "300")
    assert time.monotonic() - begun < 200  # it waits for nothing that does not come
    assert done.exit_code == 1
    assert "1 record of" in done.stderr
    assert "partition 0, offset 2: dead letter: header ettwatch.code: is missing" in done.stderr
    assert [json.loads(line)["offset"] for line in done.stdout.splitlines()] == [2]


@pytest.mark.kafka
@pytest.mark.slow
def test_an_empty_topic(house: House) -> None:
    house.make()
    done = house.ask("list")
    assert (done.exit_code, done.stdout) == (0, "0 dead letters\n")


@pytest.mark.kafka
@pytest.mark.slow
def test_what_the_brokers_do_not_take_stays(house: House) -> None:
    house.make(events_bytes=1_000)
    large = b"x" * 5_000
    house.put(
        [
            house.letter(1, value=large),
            house.letter(2),
            house.letter(3, topic="elsewhere"),
            house.letter(4, value=large),
            house.letter(5),
        ]
    )
    done = house.ask("replay", "--all-letters", "--yes")
    assert done.exit_code == 1
    assert "sent 2 messages again, marked 2 letters as replayed" in done.stdout, done.output
    assert "1@1: it is larger than the topic allows" in done.stderr
    assert "1@4: it is larger than the topic allows" in done.stderr
    assert "not sent: elsewhere/1@3: it was read from elsewhere, which is no topic of this prefix" in done.stderr
    assert house.offsets() == [1, 3, 4]


KILLED = """
import os, signal, sys
from ettwatch_app.commands.dlq import dlq
from ettwatch_app.dlq import Courier
Courier._write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
dlq(["replay", "--all-letters", "--yes"])
"""


@pytest.mark.kafka
@pytest.mark.slow
def test_killed_between_send_and_mark_it_sends_twice_at_worst(house: House) -> None:
    house.make()
    house.put([house.letter(1), house.letter(2)])
    env = {"ETTWATCH_KAFKA": house.kafka, "ETTWATCH_TOPIC_PREFIX": house.called.app.removesuffix("-worker")}
    killed = subprocess.run([sys.executable, "-c", KILLED], env=os.environ | env, capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert len(house.read(house.called.events)) == 2
    assert house.offsets() == [1, 2]
    assert house.ask("replay", "--all-letters", "--yes").exit_code == 0
    sent = sorted(record.value for record in house.read(house.called.events))
    assert sent == [b'{"v":1,"job":"a","n":1}'] * 2 + [b'{"v":1,"job":"a","n":2}'] * 2
    assert house.offsets() == []


@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_that_dies_in_the_middle(own: Cluster, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(own.bootstrap, names(prefix))
    house.make()
    house.put([house.letter(n) for n in (1, 2, 3)])
    settle: Callable[[Courier], None] = Courier.settle

    def settle_once(courier: Courier) -> None:
        settle(courier)
        own.kill(0)

    monkeypatch.setattr("ettwatch_app.dlq.courier._CHUNK_BYTES", 1)
    monkeypatch.setattr(Courier, "settle", settle_once)
    begun = time.monotonic()
    try:
        done = house.ask("replay", "--all-letters", "--yes", "--timeout", "10")
        assert time.monotonic() - begun < 150
    finally:
        own.start(0)
    assert done.exit_code == 1
    assert "stopped answering" in done.stderr
    assert "1 of 3 messages were done before: run it again for the rest" in done.stderr
    assert len([line for line in done.stderr.splitlines() if line]) == 1
    monkeypatch.undo()
    assert house.offsets() == [2, 3]


@pytest.mark.kafka
@pytest.mark.slow
def test_a_topic_that_is_missing(house: House) -> None:
    done = house.ask("list")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"Error: the topic {house.called.dlq} is missing; run `ettwatch topics create` with the same settings\n"
    )


@pytest.mark.kafka
@pytest.mark.slow
def test_the_login(own: Cluster, prefix: str) -> None:
    house = House(own.bootstrap, names(prefix))
    house.make()
    house.put([house.letter(1)])
    login = {"ETTWATCH_KAFKA_USER": USER, "ETTWATCH_KAFKA_SECURITY": "SASL_PLAINTEXT", "ETTWATCH_KAFKA": own.guarded}
    right = house.ask("replay", "--all-letters", "--yes", **login, ETTWATCH_KAFKA_PASSWORD=PASSWORD)
    assert right.exit_code == 0, right.output

    def list_wrongly(seconds: float) -> Result:
        return house.ask("list", "--timeout", str(seconds), **login, ETTWATCH_KAFKA_PASSWORD="wrong-one")

    wrong = patiently(list_wrongly, lambda done: done.stderr, 10)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "they do not let 'ettwatch' in" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1
    assert "wrong-one" not in wrong.output


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"

    def ask(seconds: float) -> Result:
        return CliRunner().invoke(dlq, ["list", "--bootstrap", address, "--timeout", str(seconds)])

    done = patiently(ask, lambda done: done.stderr)
    assert done.exit_code == 2
    assert "nothing listens there" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("list",), "no Kafka broker is named"),
        (("list", "--bootstrap", "a", "--prefix", "a b"), "cannot begin the name of a topic"),
        (("list", "--bootstrap", "a", "--since", "yesterday"), "--since: 'yesterday' is no time"),
        (("list", "--bootstrap", "a", "--until", "1790000000"), "--until: 1790000000 is in seconds"),
        (("list", "--bootstrap", "a", "--limit", "0"), "0 is not in the range"),
        (("replay", "--bootstrap", "a"), "nothing says which letters"),
        (("drop", "--bootstrap", "a", "--yes"), "nothing says which letters"),
    ],
)
def test_what_cannot_be_is_refused(words: Sequence[str], says: str) -> None:
    done = CliRunner().invoke(dlq, words)
    assert done.exit_code == 2
    assert says in done.stderr
