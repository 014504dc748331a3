"""What has to be right before a sink begins: else one line and exit code 2, or a wait that is seen."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands import sink as command
from ettwatch_app.commands.sink import sink
from ettwatch_clickhouse import migrate, open_embedded, serve
from sink.feed import create_topics
from support.kafka_native import Reaper
from support.pipeline_programs import Program, until

pytestmark = [
    pytest.mark.usefixtures("swept"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning"),
]

SECRET = "not-to-be-seen"
NOWHERE = "http://127.0.0.1:9/ettwatch"


@pytest.fixture(autouse=True)
def no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "stop_by_signal", threading.Event)


def ask(*words: str, **env: str) -> Result:
    return CliRunner().invoke(sink, ["--web", "off", *words], env=env)


def refused(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    assert SECRET not in result.output
    return lines[0]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ClickHouse with a password, and in it a database that is right."""
    store = open_embedded(tmp_path_factory.mktemp("start") / "clickhouse")
    front = serve(store, password=SECRET)
    migrate(store)
    store.command("CREATE DATABASE bare")
    yield front.url
    front.close()
    store.close()


def address(url: str, database: str = "ettwatch") -> str:
    return url.replace("http://", "http://default@") + f"/{database}"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no Kafka broker is named"),
        (("--bootstrap", "a"), "no ClickHouse is named"),
        (("--bootstrap", "a", "--clickhouse", "clickhouse:8123"), "is no address of a ClickHouse"),
        (("--bootstrap", "a", "--clickhouse", NOWHERE, "--prefix", "a b"), "cannot begin the name of a topic"),
        (("--bootstrap", "a", "--clickhouse", NOWHERE, "--partitions", "0"), "partitions 0 is out of range"),
        (("--bootstrap", "a", "--clickhouse", NOWHERE, "--web", "here"), "'here' is no address"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...], says: str) -> None:
    assert says in refused(ask(*words))


def test_the_log_level_and_the_password_file_are_read() -> None:
    words = ("--bootstrap", "a", "--clickhouse", NOWHERE)
    assert "'loud' is no level" in refused(ask(*words, ETTWATCH_LOG_LEVEL="loud"))
    assert "cannot read /nowhere" in refused(ask(*words, ETTWATCH_CLICKHOUSE_PASSWORD_FILE="/nowhere"))


def test_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        place = f"127.0.0.1:{closed.getsockname()[1]}"
    assert "nothing listens there" in refused(ask("--bootstrap", place, "--clickhouse", NOWHERE))


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        web = f"127.0.0.1:{taken.getsockname()[1]}"
        words = ("--bootstrap", "a", "--clickhouse", NOWHERE, "--web", web)
        assert f"cannot listen on {web}" in refused(ask(*words))


@pytest.mark.kafka
@pytest.mark.slow
def test_topics_that_are_not_there(kafka: str, prefix: str) -> None:
    words = ("--bootstrap", kafka, "--prefix", prefix, "--clickhouse", NOWHERE)
    assert "is missing (and 6 more topics are wrong); run `ettwatch topics create`" in refused(ask(*words))
    create_topics(kafka, prefix, 2)
    assert "has 2 partitions, wanted: at least 32" in refused(ask(*words))


@pytest.mark.kafka
@pytest.mark.slow
def test_a_clickhouse_that_is_not_as_it_has_to_be(kafka: str, prefix: str, migrated: str) -> None:
    create_topics(kafka, prefix, 2)
    words = ("--bootstrap", kafka, "--prefix", prefix, "--partitions", "2")

    def told(database: str, password: str) -> str:
        given = {"ETTWATCH_CLICKHOUSE": address(migrated, database), "ETTWATCH_CLICKHOUSE_PASSWORD": password}
        return refused(ask(*words, **given))

    assert "check user and password" in told("ettwatch", f"{SECRET}-wrong")
    assert "nowhere" in told("nowhere", SECRET)
    assert "the database has no tables; run `ettwatch migrate` first" in told("bare", SECRET)
    right = {"ETTWATCH_CLICKHOUSE": address(migrated), "ETTWATCH_CLICKHOUSE_PASSWORD": SECRET}
    done = ask(*words, "--once", **right)
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output


@pytest.mark.kafka
@pytest.mark.slow
def test_a_clickhouse_that_does_not_answer_is_waited_for(kafka: str, prefix: str, tmp_path: Path) -> None:
    create_topics(kafka, prefix, 2)
    reaper = Reaper(tmp_path / "reaped")
    words = ["sink", "--bootstrap", kafka, "--prefix", prefix, "--partitions", "2", "--clickhouse", NOWHERE]
    program = Program("sink", tmp_path, words, {"ETTWATCH_LOG_FORMAT": "json"}, reaper)
    try:
        program.start(ready=False)
        until("it says so", lambda: "cannot connect" in program.get("/readyz")[1], 120)
        assert program.get("/healthz") == (200, "ok\n")
        assert program.stop() == 0
        told = [json.loads(line) for line in program.log.read_text().splitlines()[1:]]
        ours = [line["event"] for line in told if line["logger"].startswith("ettwatch")]
        assert ours == ["waiting"]
    finally:
        program.close()
        reaper.close()
