"""`ettwatch simulate --to kafka`, on real brokers."""

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient

from ettwatch_app.commands.simulate import simulate
from ettwatch_schemas import decode_message
from ettwatch_sim.life import preset
from ettwatch_sim.life import simulate as events_of

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning"),
]

WORDS = ("--profile", "fleet", "--days", "0.3", "--jobs", "12", "--to", "kafka")


def test_arrays_of_events_with_the_job_as_key(kafka: str, prefix: str) -> None:
    topic = f"{prefix}.events"
    client = KafkaAdminClient(bootstrap_servers=kafka)
    client.create_topics({topic: {"num_partitions": 3, "replication_factor": 1}})
    client.wait_for_topics([topic])
    client.close()
    done = CliRunner().invoke(simulate, [*WORDS, "--bootstrap", kafka, "--prefix", prefix])
    assert done.exit_code == 0, done.stderr

    want = list(events_of(1, preset("fleet").but(days=0.3, jobs=12)))
    consumer = KafkaConsumer(bootstrap_servers=kafka, auto_offset_reset="earliest", consumer_timeout_ms=60_000)
    consumer.assign([TopicPartition(topic, number) for number in range(3)])
    found: list[tuple[str, str]] = []
    several = 0
    places: dict[bytes, int] = {}
    for record in consumer:
        events, wrong = decode_message(record.value)
        assert not wrong
        assert {event.job for event in events} == {record.key.decode()}
        assert places.setdefault(record.key, record.partition) == record.partition
        several += len(events) > 1
        found += [(event.job, event.id) for event in events]
        if len(found) == len(want):
            break
    consumer.close()
    assert sorted(found) == sorted((event.job, event.id) for event in want)
    assert several > 10
    assert len(set(places.values())) > 1


def test_a_topic_that_is_not_there(kafka: str, prefix: str) -> None:
    done = CliRunner().invoke(simulate, [*WORDS, "--bootstrap", kafka, "--prefix", prefix, "--timeout", "10"])
    assert done.exit_code == 2
    assert f"there is no topic {prefix}.events; make it with: ettwatch topics create" in done.stderr
