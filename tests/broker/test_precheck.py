"""What a worker and the sink look at before they begin: each thing that is wrong ends with one line."""

import socket
import time
from collections.abc import Iterator

import pytest
from kafka.admin import KafkaAdminClient

from ettwatch_faust import Access, BrokersError, SettingError, TopicSettings, connecting, names, plan, precheck
from support.kafka import PASSWORD, USER, Cluster
from support.patience import patiently

pytestmark = [
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def client(kafka: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka)
    yield client
    client.close()


def make(client: KafkaAdminClient, counts: dict[str, int]) -> None:
    # Plain topics: their settings are not as planned, which stops nothing here.
    specs = {name: {"num_partitions": count, "replication_factor": 1} for name, count in counts.items()}
    client.create_topics(specs, wait_for_metadata=True)


def why(kafka: str, prefix: str, partitions: int) -> str:
    """The line; empty if all is well."""
    try:
        precheck(Access.read({}, kafka), plan(TopicSettings(prefix, partitions)), 60)
    except SettingError as error:
        return str(error)
    return ""


def unusable(access: Access, settings: TopicSettings, seconds: float) -> str:
    """The line on brokers that cannot be used."""

    def ask(seconds: float) -> str:
        with pytest.raises(BrokersError) as refused:
            precheck(access, plan(settings), seconds)
        return str(refused.value)

    return patiently(ask, str, seconds)


@pytest.mark.kafka
@pytest.mark.slow
def test_topics_are_as_planned_or_one_line_says_what_to_do(kafka: str, prefix: str, client: KafkaAdminClient) -> None:
    called = names(prefix)
    assert why(kafka, prefix, 2) == (
        f"the topic {called.events} is missing (and {len(called) - 2} more topics are wrong); "
        "run `ettwatch topics create` with the same settings"
    )

    make(client, {name: 2 for name in called[1:] if name != called.jobs})
    assert why(kafka, prefix, 2) == (
        f"the topic {called.jobs} is missing; run `ettwatch topics create` with the same settings"
    )

    make(client, {called.jobs: 3})
    differs = why(kafka, prefix, 2)
    assert differs.startswith(f"the topic {called.jobs} has 3 partitions, wanted: 2, as {called.events} has; ")

    client.delete_topics([called.jobs])
    gone = time.monotonic() + 60
    while why(kafka, prefix, 2) == differs and time.monotonic() < gone:
        time.sleep(0.1)
    make(client, {called.jobs: 2})
    assert why(kafka, prefix, 2) == ""

    shared = sum(spec.shared for spec in plan(TopicSettings(prefix)))
    few = why(kafka, prefix, 3)
    assert few.startswith(
        f"the topic {called.events} has 2 partitions, wanted: at least 3 (and {shared - 1} more topics are wrong);"
        " settle for it (--partitions 2), or delete all topics of the prefix"
    )
    assert "`ettwatch topics create`" in few
    assert "\n" not in few


@pytest.mark.kafka
@pytest.mark.slow
def test_a_worker_needs_no_topic_but_those_it_names(kafka: str, prefix: str, client: KafkaAdminClient) -> None:
    called = names(prefix)
    make(client, {called.jobs: 2})
    some = [spec for spec in plan(TopicSettings(prefix, 2)) if spec.name == called.jobs]
    precheck(Access.read({}, kafka), some, 60)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize(
    ("login", "says"),
    [
        ({"USER": USER, "PASSWORD": "wrong-one", "SECURITY": "SASL_PLAINTEXT"}, "they do not let 'ettwatch' in"),
        ({"USER": USER, "PASSWORD": PASSWORD}, "cannot use the Kafka brokers"),  # encrypted, to a port that is not
        ({}, "does this port want encryption or a login?"),
    ],
)
def test_a_login_that_is_refused(own: Cluster, prefix: str, login: dict[str, str], says: str) -> None:
    access = Access.read({f"ETTWATCH_KAFKA_{name}": value for name, value in login.items()}, own.guarded)
    line = unusable(access, TopicSettings(prefix), 8)
    assert says in line
    assert "wrong-one" not in line
    assert "\n" not in line


@pytest.mark.kafka
@pytest.mark.slow
def test_the_right_login_gets_as_far_as_the_topics(own: Cluster, prefix: str) -> None:
    env = {
        "ETTWATCH_KAFKA_USER": USER,
        "ETTWATCH_KAFKA_PASSWORD": PASSWORD,
        "ETTWATCH_KAFKA_SECURITY": "SASL_PLAINTEXT",
    }
    with pytest.raises(SettingError, match="is missing"):
        precheck(Access.read(env, own.guarded), plan(TopicSettings(prefix)), 60)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    assert "nothing listens there" in unusable(Access.read({}, address), TopicSettings(), 0.5)


def test_somebody_listens_and_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(BrokersError, match="they do not answer in time"):
            precheck(Access.read({}, f"127.0.0.1:{silent.getsockname()[1]}"), plan(TopicSettings()), 0.5)
    assert time.monotonic() - begun < 60


class Quiet:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_what_goes_wrong_in_the_block_itself_is_not_blamed_on_the_brokers() -> None:
    client = Quiet()
    with pytest.raises(BrokenPipeError), connecting(Access(("a:1",)), lambda: client):
        raise BrokenPipeError
    assert client.closed
