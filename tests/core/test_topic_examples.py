"""The published examples of what workers send are what the core makes, and every reader takes them."""

import json
from collections.abc import Callable
from typing import Any, Final

from ettwatch_core import CELL
from ettwatch_schemas import (
    decode_attempts,
    decode_message,
    decode_phases,
    decode_segments,
    decode_summary,
    decode_window,
    read_letter,
    topic_examples,
)
from support.topic_examples import FOLDER, files, letter

DECODE: Final[dict[str, Callable[[bytes], Any]]] = {
    "jobs": decode_summary,
    "attempts": decode_attempts,
    "phases": decode_phases,
    "segments": decode_segments,
}


def test_the_files_are_up_to_date() -> None:
    committed = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    assert committed == files(), "run PYTHONPATH=tests python -m support.topic_examples"


def test_every_example_is_read() -> None:
    read = set()
    for name, data in topic_examples():
        topic = name.partition(".")[0]
        if topic in DECODE:
            read.add(DECODE[topic](data).job)
        elif topic == "windows":
            assert decode_window(data).ett_pct is not None
        elif topic == "accepted":
            decoded = [decode_message(line) for line in data.split(b"\n")]
            assert [len(message.events) for message in decoded] == [1, 2]
            assert [message.errors for message in decoded] == [[], []]
        else:
            record = json.loads(data)
            headers = [(name, text.encode()) for name, text in record["headers"].items()]
            assert read_letter(record["key"].encode(), record["value"].encode(), headers) == letter()
    assert read == {"ctr-ranker"}


def test_they_show_what_can_be() -> None:
    told = dict(topic_examples())
    first, later = decode_phases(told["phases.first"]), decode_phases(told["phases.next"])
    assert (first.whole, later.whole) == (True, False)
    assert first.final
    assert later.gone
    segments = decode_segments(told["segments.next"])
    assert segments.first == segments.last == segments.hours[0].cell // CELL * CELL
    assert decode_summary(told["jobs.first"]).version == decode_attempts(told["attempts.first"]).version
