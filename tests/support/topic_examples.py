"""The published examples of what a worker sends, made by the core from one job and from what was refused.

`PYTHONPATH=tests python -m support.topic_examples` writes the files anew.
"""

import json
from pathlib import Path
from typing import Any, Final

import ettwatch_schemas
from ettwatch_core import JobState, Published, Rules, apply, settle, snapshot
from ettwatch_core.ownership import Owners
from ettwatch_core.windows import FLEET, MINUTE_US, Clock, Merger, Sizes, Source, Told
from ettwatch_schemas import (
    AttemptsUpdate,
    DeadLetter,
    DecodeError,
    Event,
    JobSummary,
    SegmentsUpdate,
    Update,
    Window,
    decode_event,
    encode_event,
    encode_update,
    encode_window,
    letter_headers,
)
from support.story import START, Story

FOLDER: Final = Path(ettwatch_schemas.__file__).parent / "examples" / "topics"
_SECOND: Final = 1_000_000
_JOB: Final = "ctr-ranker"


def _first() -> list[Event]:
    """A job that loses its first attempt to a broken machine, and goes on after a while."""
    story = Story(_JOB).submitted().started(5)
    story.phase(6, 30, "trainer_init.checkpoint_load").phase(6, 33, "trainer_init.checkpoint_load", rank=1)
    story.trains(40, report_every_s=15)
    for tick in range(1, 17):
        story.progress(40 + 15 * tick, 4096 * tick, step=8 * tick)
    story.phase(160, 168, "wasted_training.checkpoint_save")
    story.phase(168, 181, "wasted_training.checkpoint_save", background=True)
    story.tell(181, "checkpoint_durable", attempt=0, position=32_768, step=64)
    story.ended(290, "failed", cause="hardware", source="scheduler", exit_code=137)
    return story.started(330, 1).phase(340, None, "trainer_init", 1).events


def _next() -> list[Event]:
    """Of another rank comes late that it began earlier, so the phase has another begin; then training goes on."""
    story = Story(_JOB)
    story.events = _first()
    known = len(story.events)
    story.phase(338, None, "trainer_init", 1, rank=1).trains(400, 32_768, 1, step=64).progress(420, 36_864, 1, step=72)
    return story.events[known:]


def publications() -> list[list[Update]]:
    """What is published of the job at two looks."""
    rules, published, state = Rules(lateness=120 * _SECOND), Published(), JobState(_JOB)
    out: list[list[Update]] = []
    for events, at in ((_first(), 345), (_next(), 425)):
        for event in events:
            apply(state, event, rules)
            settled = settle(state, rules, every=0)
            if settled is not None:
                published.settled(settled)
        told = published.publication(snapshot(state, rules, START + at * _SECOND))
        assert told.summary is not None
        out.append([told.summary, *told.attempts, *told.phases, *told.segments])
    return out


def window() -> Window:
    """The last hour of a fleet that has this job alone."""
    sizes, now = Sizes.parse("1h"), (START + 425 * _SECOND) // MINUTE_US
    source, merger = Source(sizes, now, Owners("", ())), Merger(sizes, 1, 1)
    for updates in publications():
        for update in updates:
            match update:
                case JobSummary():
                    source.summary(update, now)
                case AttemptsUpdate():
                    source.attempts(update, now)
                case SegmentsUpdate():
                    source.segments(update, now)
    merger.take(Told(0, 1, sizes.layout, source.tell(source.dirty()), Clock(now, now)))
    merger.advance(now)
    made = [each for each in merger.publish(START + 470 * _SECOND, lambda: True) if each.scope == FLEET.scope]
    return made[-1]


def letter() -> DeadLetter:
    """A message that is refused, because its time is in seconds."""
    event = {"v": 1, "id": "a-1", "kind": "heartbeat", "job": _JOB, "ts": START // _SECOND, "attempt": 0}
    value = json.dumps(event, separators=(",", ":")).encode()
    try:
        decode_event(value)
    except DecodeError as error:
        code, field, fix = error.code, error.field, error.fix
        reason = str(error)
    return DeadLetter(
        value=value,
        key=_JOB.encode(),
        code=code,
        reason=reason,
        field=field,
        fix=fix,
        topic="ett.events",
        partition=7,
        offset=81_234,
        index=None,
        time=START,
        job=None,
        handled=None,
    )


def _record(letter: DeadLetter) -> dict[str, Any]:
    headers = {name: data.decode() for name, data in letter_headers(letter)}
    key, value = (None if data is None else data.decode() for data in (letter.key, letter.value))
    return {"key": key, "value": value, "headers": headers}


def files() -> dict[str, bytes]:
    """The content of every file by its name."""
    out = {}
    for when, updates in zip(("first", "next"), publications(), strict=True):
        for topic, update in zip(("jobs", "attempts", "phases", "segments"), updates, strict=True):
            out[f"{topic}.{when}.json"] = encode_update(update) + b"\n"
    events = [encode_event(event) for event in _next()]
    out["accepted.lines.jsonl"] = events[0] + b"\n[" + b",".join(events[1:]) + b"]\n"
    out["windows.fleet.json"] = encode_window(window()) + b"\n"
    out["dlq.letter.json"] = json.dumps(_record(letter())).encode() + b"\n"
    return out


if __name__ == "__main__":
    for name, data in files().items():
        (FOLDER / name).write_bytes(data)
