"""The product against a second implementation of the rules, on the cases and on random jobs."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import Event, decode_event
from support.jobs import BASE, Size, mangle, random_job
from support.oracle import SECOND, Segment, summarize

CASES = Path(__file__).parents[1] / "cases"
RULES = Rules(lateness=None)
BLOCK = 100
NOT_COMPARED = {"version", "rules_version"}


def near(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, seconds to the microsecond."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(near(one[key], other[key]) for key in one)
        case ((list() | tuple()), (list() | tuple())):
            return len(one) == len(other) and all(map(near, one, other))
        case float(), int() | float():
            return abs(one - other) <= 1e-6
        case _:
            return bool(one == other)


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments without empty ones, neighbours of one kind made one."""
    out: list[Segment] = []
    for attempt, stage, start, end, gpus in segments:
        if out and (out[-1][0], out[-1][1], out[-1][3], out[-1][4]) == (attempt, stage, start, gpus):
            out[-1] = (attempt, stage, out[-1][2], end, gpus)
        elif start < end:
            out.append((attempt, stage, start, end, gpus))
    return out


def differences(events: Sequence[Event], now: int | None) -> dict[str, tuple[Any, Any]]:
    """Return what the oracle and the product say, where they differ."""
    state = JobState(events[0].job)
    for event in events:
        apply(state, event, RULES)
    snap = snapshot(state, RULES, now)
    right = summarize(events, now)
    right["segments"] = joined(right["segments"])
    said = snap.summary.model_dump(exclude=NOT_COMPARED)
    said["segments"] = joined((s.attempt, s.stage, s.start, s.end, s.gpus) for s in snap.segments)
    return {name: (right[name], value) for name, value in said.items() if not near(right[name], value)}


def shrunk(events: list[Event], wrong: Callable[[list[Event]], bool]) -> list[Event]:
    """Drop events, many at once and then one by one, as long as what is left is still wrong."""
    size = len(events) // 2
    while size:
        at = 0
        while at < len(events):
            fewer = events[:at] + events[at + size :]
            if fewer and wrong(fewer):
                events = fewer
            else:
                at += size
        size //= 2
    return events


def told(events: Iterable[Event]) -> str:
    """Return events for people, with seconds since the base of random jobs."""
    lines = []
    for event in sorted(events, key=lambda event: event.ts):
        fields = event.model_dump(exclude_defaults=True, exclude={"id", "job", "ts", "kind"})
        lines.append(f"{(event.ts - BASE) / SECOND:14} {event.kind} {fields}")
    return "\n".join(lines)


def now_for(rng: Random, events: Sequence[Event]) -> int | None:
    """Return a clock: none, one that is behind, or one so late that rule 8 speaks."""
    late = rng.choice((None, None, -50, 0, 100, 650, 5_000, 22_000, 700_000))
    return None if late is None else max(event.ts for event in events) + late * SECOND


@pytest.mark.parametrize("path", sorted(CASES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_oracle_agrees_with_the_cases(path: Path) -> None:
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    events = [decode_event(line) for line in path.read_bytes().splitlines()]
    summary = summarize(events, expected["now"])
    right = {name: value for name, value in expected.items() if name not in ("why", "now")}
    assert {name: summary[name] for name in right if not near(right[name], summary[name])} == {}


def test_the_cases_are_there() -> None:
    assert len(list(CASES.glob("*.jsonl"))) >= 11


@pytest.mark.parametrize("size", ["small", "medium"])
def test_oracle_keeps_the_laws(size: Size) -> None:
    for seed in range(200 if size == "small" else 30):
        rng = Random(seed)
        events = random_job(rng, size=size)
        now = now_for(rng, events)
        summary = summarize(events, now)
        at = summary["t0"]
        for _, _, start, end, _ in summary["segments"]:
            assert start == at <= end, f"seed {seed}: segments overlap or leave a gap"
            at = end
        assert at == summary["t1"], f"seed {seed}: the segments do not end at T1"
        total = summary["effective_s"] + sum(summary["components"].values())
        assert near(total, summary["e2e_s"]), f"seed {seed}: time is not conserved"
        assert near(summary["level_1_s"], summary["e2e_s"]), f"seed {seed}: level 1 does not add up"
        again = summarize(mangle(rng, events, lateness_us=10**9), now)
        assert again == summary, f"seed {seed}: order or duplicates matter"


def quarrel(seed: int, size: Size) -> str:
    """Return a small job on which the product and the oracle differ, made of that of `seed`; empty if none."""
    rng = Random(seed)
    events = mangle(rng, random_job(rng, size=size), lateness_us=rng.choice((0, 10, 3600)) * SECOND)
    now = now_for(rng, events)
    found = differences(events, now)
    if not found:
        return ""
    first = min(found)
    events = shrunk(events, lambda fewer: first in differences(fewer, now))
    says = (f"{name}: oracle {a}, product {b}" for name, (a, b) in differences(events, now).items())
    return "\n".join([f"seed {seed} of {size}, now {now}:", told(events), *says])


@pytest.mark.parametrize("size", ["small", "medium"])
@pytest.mark.parametrize("block", range(6))
def test_product_agrees_with_the_oracle(size: Size, block: int) -> None:
    count = BLOCK if size == "small" else BLOCK // 5
    for seed in range(block * count, (block + 1) * count):
        assert quarrel(seed, size) == ""
