"""One line for each thing: for people, or for log collectors."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ettwatch_faust.logs import configure

log = logging.getLogger("ettwatch_app.any")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers = list(root.handlers)
    others = [root, *(logging.getLogger(name) for name in ("kafka", "aiokafka", "faust", "mode", "clickhouse_connect"))]
    others.append(logging.getLogger("urllib3"))
    levels = [each.level for each in others]
    yield
    root.handlers[:] = handlers
    for each, level in zip(others, levels, strict=True):
        each.setLevel(level)


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_lines_for_people() -> None:
    stream = io.StringIO()
    configure(None, stream=stream)
    log.info("%d partitions", 12, extra={"event": "assigned"})
    log.warning("away\nfor a while")
    log.debug("not said")
    first, second = lines(stream)
    assert first.endswith("  12 partitions")
    assert second.endswith("  ! away for a while")


def test_objects_for_collectors() -> None:
    stream = io.StringIO()
    configure("JSON", "debug", stream)
    log.info("%d partitions", 12, extra={"event": "assigned", "partitions": 12, "odd": {1}})
    try:
        raise ValueError("x")
    except ValueError:
        log.exception("failed")
    first, second = (json.loads(line) for line in lines(stream))
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "info",
        "event": "assigned",
        "message": "12 partitions",
        "partitions": 12,
        "odd": "{1}",
        "logger": "ettwatch_app.any",
    }
    assert (second["level"], second["event"]) == ("error", "said")
    assert "ValueError: x" in second["trace"]


def test_called_again_it_replaces_what_it_set() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("json", stream=first)
    configure(None, "warning", second)
    log.info("not said")
    log.warning("said")
    assert lines(first) == []
    assert len(lines(second)) == 1


def test_clients_do_not_repeat_themselves() -> None:
    stream = io.StringIO()
    configure(None, stream=stream)
    kafka = logging.getLogger("kafka.net")
    for node in range(50):
        kafka.warning("connection %s lost", node)
        kafka.info("chatter")
    kafka.warning("another thing")
    for _ in range(3):
        log.warning("ours")
    assert [line.split("! ")[1] for line in lines(stream)] == ["connection 0 lost", "another thing", *["ours"] * 3]


def test_a_closed_stream_ends_nothing() -> None:
    stream = io.StringIO()
    configure(None, stream=stream)
    stream.close()
    log.warning("nobody hears it")


def test_there_is_no_such_level() -> None:
    with pytest.raises(ValueError, match="'loud' is no level of the log; choose one of debug, info, warning, error"):
        configure(None, "loud")
