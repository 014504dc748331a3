"""One summary for each job, whatever the memory, the order and the split of the input."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from ettwatch_app.replay import Options, Outcome, replay_files
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import Event, JobSubmitted, encode_event
from support.jobs import random_job

RULES = Rules(lateness=None)


def interleaved(rng: Random, jobs: int) -> list[Event]:
    """Events of many jobs, mixed; each job keeps its order."""
    queues = [random_job(rng, f"job-{number}" if number % 3 else f"jöb \\ {number}") for number in range(jobs)]
    mixed: list[Event] = []
    while queues:
        queue = rng.choice(queues)
        mixed.append(queue.pop(0))
        queues = [left for left in queues if left]
    return mixed


def written(path: Path, events: list[Event]) -> str:
    path.write_bytes(b"".join(encode_event(event) + b"\n" for event in events))
    return str(path)


def results(outcome: Outcome) -> list[dict[str, object]]:
    return [json.loads(line) for line in outcome.results]


def first_appearance(events: list[Event]) -> list[str]:
    return list(dict.fromkeys(event.job for event in events))


def direct(events: list[Event]) -> dict[str, dict[str, object]]:
    """The summaries by the core alone."""
    states: dict[str, JobState] = {}
    for event in events:
        apply(states.setdefault(event.job, JobState(event.job)), event, RULES)
    return {job: snapshot(state, RULES).summary.model_dump(mode="json") for job, state in states.items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("memory", [64 << 20, 100_000, 2_000], ids=["memory", "file", "buckets-split"])
def test_spilled_or_not_the_results_are_those_of_the_core(seed: int, memory: int, tmp_path: Path) -> None:
    events = interleaved(Random(seed), 40)
    outcome = replay_files([written(tmp_path / "events.jsonl", events)], Options(memory=memory))
    got = results(outcome)
    assert outcome.spilled == (memory < 64 << 20)
    assert [job["job"] for job in got] == first_appearance(events)
    assert {str(job["job"]): job for job in got} == direct(events)


@pytest.mark.parametrize("memory", [64 << 20, 50_000])
def test_order_duplicates_splits_and_arrays_change_nothing(memory: int, tmp_path: Path) -> None:
    rng = Random(7)
    events = interleaved(rng, 25)
    wanted = direct(events)
    shuffled = events + rng.sample(events, len(events) // 3)
    rng.shuffle(shuffled)
    cut = len(shuffled) // 2
    one = written(tmp_path / "one.jsonl", shuffled[:cut])
    two = tmp_path / "two.jsonl.gz"
    with gzip.open(two, "wb") as file:
        rest = shuffled[cut:]
        while rest:
            batch = [event for event in rest if event.job == rest[0].job][: rng.randrange(1, 6)]
            rest = [event for event in rest if all(event is not taken for taken in batch)]
            file.write(b"[" + b", ".join(encode_event(event) for event in batch) + b"]\n")
    outcome = replay_files([one, str(two)], Options(memory=memory))
    got = {str(job["job"]): job for job in results(outcome)}
    assert list(outcome.problems.texts()) == []
    assert got == wanted


@pytest.mark.parametrize("memory", [64 << 20, 1])
def test_an_array_of_several_jobs_counts_for_its_first(memory: int, tmp_path: Path) -> None:
    events = [JobSubmitted(id="1", job=job, ts=1_790_000_000_000_000) for job in ("a", "b")]
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"[" + b",".join(encode_event(event) for event in events) + b"]\n")
    outcome = replay_files([str(path)], Options(memory=memory))
    assert [job["job"] for job in results(outcome)] == ["a"]
    (told,) = outcome.problems.texts()
    assert told.startswith(f"{path}:1: [1] job: 'b'")


def test_jobs_come_in_the_order_of_their_first_event_over_all_files(tmp_path: Path) -> None:
    rng = Random(11)
    a, b, c = (random_job(rng, job) for job in ("a", "b", "c"))
    one = written(tmp_path / "one.jsonl", [*b, *a[:1]])
    two = written(tmp_path / "two.jsonl", [*c, *a[1:]])
    for memory in (64 << 20, 1):
        got = results(replay_files([one, two], Options(memory=memory)))
        assert [job["job"] for job in got] == ["b", "a", "c"]


def test_a_job_named_in_other_places_stays_whole(tmp_path: Path) -> None:
    """`job` inside labels, written with escapes or told twice: the decoded job counts."""
    lines = [
        '{"v":1,"id":"1","kind":"job_submitted","labels":{"job":"x"},"job":"a","ts":1790000000000000}',
        '{"v":1,"id":"2","kind":"attempt_started","j\\u006fb":"a","ts":1790000001000000,"attempt":0}',
        '{"v":1,"id":"3","kind":"attempt_ended","job":"\\u0061","ts":1790000009000000,"attempt":0,"outcome":"failed"}',
        '{"job":"b","v":1,"id":"4","kind":"job_ended","ts":1790000010000000,"outcome":"failed","job":"a"}',
        '{"v":1,"id":"5","kind":"heartbeat","ts":1790000003000000,"attempt":0,"host":"job","job" : "a"}',
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(lines) + "\n")
    outcome = replay_files([str(path)], Options())
    (got,) = results(outcome)
    assert outcome.accepted == 5
    assert (got["job"], got["attempts"], got["status"], got["e2e_s"]) == ("a", 1, "failed", 10.0)


def test_results_beyond_their_budget_go_through_a_file() -> None:
    from ettwatch_app.replay.results import Results

    rng = Random(3)
    lines = [(place, b"%d:" % place + b"x" * rng.randrange(0, 3_000)) for place in range(2_000)]
    shuffled = rng.sample(lines, len(lines))
    kept = Results(budget=20_000)
    for place, line in shuffled:
        kept.add(place, line)
    assert list(kept) == [line for _, line in lines]
    kept.close()
