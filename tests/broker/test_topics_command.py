"""`ettwatch topics` on real brokers, and on what is none."""

import json
import socket
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from kafka.admin import ConfigResource, KafkaAdminClient

from ettwatch_app.commands.topics import topics
from ettwatch_app.doctor.kafka import check_kafka
from ettwatch_faust import Access, BrokersError, admin, names
from support.kafka import PASSWORD, USER, Cluster
from support.patience import patiently

pytestmark = [
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning"),
]

SMALL = ("--partitions", "3", "--replication", "1")


def ask(*words: str, **env: str) -> Result:
    patient = words if "--timeout" in words else (*words, "--timeout", "60")
    return CliRunner().invoke(topics, patient, env=env)


def stderr(result: Result) -> str:
    return result.stderr


def kill_while_connected(cluster: Cluster) -> None:
    with admin(Access.read({}, cluster.bootstrap), 8) as client:
        cluster.kill(0)
        client.describe_topics(["any"])


def told(result: Result) -> dict[str, dict[str, str]]:
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {row["topic"]: row for row in rows}


@pytest.fixture
def client(kafka: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka)
    yield client
    client.close()


@pytest.mark.kafka
@pytest.mark.slow
def test_create_may_be_repeated(kafka: str, prefix: str) -> None:
    words = ("--bootstrap", kafka, "--prefix", prefix, *SMALL, "--format", "json")
    missing = ask("check", *words)
    assert missing.exit_code == 1
    assert {row["finding"] for row in told(missing).values()} == {"missing"}

    first, again, right = ask("create", *words), ask("create", *words), ask("check", *words)
    assert (first.exit_code, again.exit_code, right.exit_code) == (0, 0, 0)
    assert list(told(first)) == list(names(prefix)[1:])
    assert {row["finding"] for row in told(first).values()} == {"created"}
    assert told(again) == told(right)
    assert {row["finding"] for row in told(right).values()} == {"ok"}


@pytest.mark.kafka
@pytest.mark.slow
def test_what_is_wrong_is_found_and_nothing_is_changed(kafka: str, prefix: str, client: KafkaAdminClient) -> None:
    called = names(prefix)
    client.create_topics({called.events: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    env = {"ETTWATCH_KAFKA": kafka, "ETTWATCH_TOPIC_PREFIX": prefix}
    clash = ask("create", *SMALL, **env)
    assert (clash.exit_code, clash.stdout) == (2, "")
    assert f"{called.events} is there with 2 partitions, not 3; create the others with --partitions 2" in clash.stderr

    made = ask("create", "--partitions", "2", "--replication", "1", "--format", "json", **env)
    assert made.exit_code == 1
    rows = [json.loads(line) for line in made.stdout.splitlines()]
    assert [(row["topic"], row["finding"]) for row in rows] == [
        (called.events, "wrong_message_size"),
        (called.events, "wrong_timestamps"),
        *((name, "created") for name in called[2:]),
    ]

    configs = {"cleanup.policy": "compact", "retention.ms": "1000"}
    changed = client.alter_configs([ConfigResource("TOPIC", called.attempts, configs)])
    assert changed == {"topic": {called.attempts: "OK"}}
    found = ask("check", *SMALL, COLUMNS="200", **env)
    end = time.monotonic() + 60
    while "wrong_retention" not in found.stdout and time.monotonic() < end:  # a broker takes a moment to know
        found = ask("check", *SMALL, COLUMNS="200", **env)
    assert found.exit_code == 1
    assert [line.split() for line in found.stdout.splitlines() if line.startswith(f"{called.attempts} ")] == [
        [called.attempts, "too_few_partitions", "2,", "wanted:", "at", "least", "3"],
        [called.attempts, "wrong_cleanup_policy", "cleanup.policy=compact,", "wanted:", "delete"],
        [called.attempts, "wrong_retention", "retention.ms=1000,", "wanted:", "at", "least", "604800000"],
    ]
    do = f"-> kafka-configs.sh --alter --topic {called.attempts} --add-config retention.ms=604800000"
    assert do in [line.strip() for line in found.stdout.splitlines()]
    assert len(client.describe_topics([called.events])[0]["partitions"]) == 2


@pytest.mark.kafka
@pytest.mark.slow
def test_more_copies_than_brokers(own: Cluster, prefix: str) -> None:
    done = ask("create", "--bootstrap", own.bootstrap, "--prefix", prefix, "--replication", "2")
    assert done.exit_code == 2
    assert done.stderr.strip().endswith("there are fewer brokers than copies; give --replication N")


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize(
    ("login", "code", "says"),
    [
        ({"USER": USER, "PASSWORD": PASSWORD, "SECURITY": "SASL_PLAINTEXT"}, 1, ""),
        ({"USER": USER, "PASSWORD": "wrong-one", "SECURITY": "SASL_PLAINTEXT"}, 2, "they do not let 'ettwatch' in"),
        ({"USER": USER, "PASSWORD": PASSWORD}, 2, ""),  # encrypted, to a port that is not
        ({}, 2, "does this port want encryption or a login?"),
    ],
)
def test_logging_in(own: Cluster, prefix: str, login: dict[str, str], code: int, says: str) -> None:
    env = {f"ETTWATCH_KAFKA_{name}": value for name, value in login.items()}

    def check(seconds: float) -> Result:
        return ask("check", "--bootstrap", own.guarded, "--prefix", prefix, "--timeout", str(seconds), **env)

    done = patiently(check, stderr, 3)
    assert done.exit_code == code
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == (code == 2)
    assert "wrong-one" not in done.output


@pytest.mark.kafka
@pytest.mark.slow
def test_brokers_that_go_away_meanwhile(own: Cluster) -> None:
    begun = time.monotonic()
    try:
        with pytest.raises(BrokersError, match="stopped answering"):
            kill_while_connected(own)
        assert time.monotonic() - begun < 100
    finally:
        own.start(0)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    done = patiently(lambda seconds: ask("create", "--bootstrap", address, "--timeout", str(seconds)), stderr)
    assert done.exit_code == 2
    assert done.stderr == (
        f"Error: cannot use the Kafka brokers at {address}: nothing listens there; is the broker up, the port right?\n"
    )


def test_somebody_listens_and_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        done = ask("check", "--bootstrap", f"127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.5")
        assert time.monotonic() - begun < 60
    assert done.exit_code == 2
    assert "they do not answer in time" in done.stderr


def test_no_such_host() -> None:
    done = patiently(
        lambda seconds: ask("check", "--bootstrap", "kafka.invalid:9092", "--timeout", str(seconds)), stderr
    )
    assert done.exit_code == 2
    assert "there is no such host" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no Kafka broker is named"),
        (("--bootstrap", "a:b"), "is no address"),
        (("--bootstrap", "a", "--partitions", "0"), "partitions 0 is out of range"),
        (("--bootstrap", "a", "--prefix", "a b"), "cannot begin the name of a topic"),
        (("--bootstrap", "a", "--replication", "x"), "not a valid integer"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...], says: str) -> None:
    done = ask("check", *words)
    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.kafka
@pytest.mark.slow
def test_the_doctor_looks_at_the_topics(kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_WAIT_S", "_ASK_S"):
        monkeypatch.setattr(f"ettwatch_app.doctor.kafka.{limit}", 60.0)
    env = {"ETTWATCH_KAFKA": kafka, "ETTWATCH_TOPIC_PREFIX": prefix, "ETTWATCH_REPLICATION": "1"}
    (reached, missing) = check_kafka({**env, "ETTWATCH_PARTITIONS": "3"})
    assert (reached.level, missing.level, missing.do) == ("ok", "fail", "ettwatch topics create")
    assert ask("create", "--bootstrap", kafka, "--prefix", prefix, *SMALL).exit_code == 0
    (_, well) = check_kafka({**env, "ETTWATCH_PARTITIONS": "3"})
    assert (well.level, well.what.split()[0]) == ("ok", str(len(names(prefix)) - 1))
    (_, *few, _) = check_kafka({**env, "ETTWATCH_PARTITIONS": "4"})
    assert {each.level for each in few} == {"fail"}
    assert all("wanted: at least 4" in each.what for each in few)
    (_, unusable) = check_kafka({**env, "ETTWATCH_PARTITIONS": "many"})
    assert (unusable.level, unusable.do) == ("fail", "correct it, or unset it")
