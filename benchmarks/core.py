"""Decoding and folding on one core, as ratios to bare ``json.loads`` of the same bytes.

Writes benchmarks/results/core.json. Run: python benchmarks/core.py [--jobs 10000]
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from itertools import zip_longest
from random import Random

from _common import save
from ettwatch_core import JobState, Rules, apply, dump, settle, summarize
from ettwatch_schemas import Event, decode_event, decode_message

SECOND = 1_000_000
START = 1_790_000_000_000_000


def job_lines(job: str, rng: Random, *, reports: int, every_s: int) -> list[bytes]:
    """One job: queued, started, initialised, compiled, trained with saves, ended."""
    ts = START + rng.randrange(600 * SECOND)
    lines: list[bytes] = []

    def add(kind: str, **fields: object) -> None:
        body = {"v": 1, "id": f"{job}-{len(lines)}", "kind": kind, "job": job, "ts": ts, **fields}
        lines.append(json.dumps(body).encode())

    def span(phase: str, length: int) -> None:
        nonlocal ts
        name = f"s{len(lines)}"
        add("phase_started", attempt=0, rank=0, span=name, phase=phase)
        ts += length
        add("phase_ended", attempt=0, rank=0, span=name, outcome="ok")

    add("job_submitted", team="ads", model="ctr-a", cluster="c1", gpus=8)
    ts += rng.randrange(60 * SECOND)
    add("attempt_started", attempt=0, gpus=8, world_size=8)
    for phase in ("device_init", "process_group_init", "train_module_creation", "get_first_batch_data"):
        span(f"trainer_init.{phase}", rng.randrange(1, 30 * SECOND))
    span("pt2_compilation", rng.randrange(1, 300 * SECOND))
    add("training_started", attempt=0, position=0, step=0, report_every_s=2 * every_s)
    position = waited = 0
    for i in range(1, reports + 1):
        ts += every_s * SECOND + rng.randrange(100_000)
        position += rng.randrange(90_000, 110_000)
        waited += rng.randrange(SECOND)
        add("progress", attempt=0, position=position, step=40 * i, data_wait_us=waited, rank=0, host="trainer-17")
        if i % 40 == 0:
            span("wasted_training.checkpoint_save", 2 * SECOND)
    ts += SECOND
    add("training_ended", attempt=0, position=position, step=40 * reports)
    span("shutdown.model_publish", 60 * SECOND)
    add("attempt_ended", attempt=0, outcome="succeeded")
    add("job_ended", outcome="succeeded")
    return lines


def interleaved(jobs: int, reports: int, rng: Random) -> list[bytes]:
    """All jobs at once, one event of each in turn."""
    rows = [job_lines(f"job-{i:05}", rng, reports=reports, every_s=15) for i in range(jobs)]
    return [line for turn in zip_longest(*rows) for line in turn if line is not None]


def timed(work: Callable[[], object]) -> float:
    """Time a call; what was there before it is no burden to the collector of garbage."""
    gc.collect()
    gc.freeze()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def each(work: Callable[[bytes], object], lines: list[bytes]) -> None:
    for line in lines:
        work(line)


def fold(events: list[Event]) -> dict[str, JobState]:
    rules = Rules(lateness=None)
    states: dict[str, JobState] = {}
    for event in events:
        state = states.get(event.job)
        if state is None:
            state = states[event.job] = JobState(event.job)
        apply(state, event, rules)
    return states


def summaries(states: dict[str, JobState]) -> None:
    rules = Rules(lateness=None)
    for state in states.values():
        summarize(state, rules)


def decoding(lines: list[bytes], rounds: int) -> dict[str, float]:
    """Pairs in one run: json.loads, decode_event, and both for arrays of fifty. Lines come job by job."""
    arrays = [b"[" + b",".join(lines[i : i + 50]) + b"]" for i in range(0, len(lines), 50)]
    assert all(decode_message(array).errors == [] for array in arrays[:100])
    rows: dict[str, list[float]] = {"loads": [], "event": [], "loads_arrays": [], "arrays": []}
    for _ in range(rounds):
        rows["loads"].append(timed(lambda: each(json.loads, lines)))
        rows["event"].append(timed(lambda: each(decode_event, lines)))
        rows["loads_arrays"].append(timed(lambda: each(json.loads, arrays)))
        rows["arrays"].append(timed(lambda: each(decode_message, arrays)))
    per = {name: 1e6 * statistics.median(values) / len(lines) for name, values in rows.items()}
    return {
        "json_loads_us": per["loads"],
        "decode_event_us": per["event"],
        "decode_event_ratio": statistics.median(b / a for a, b in zip(rows["loads"], rows["event"], strict=True)),
        "json_loads_arrays_us": per["loads_arrays"],
        "decode_arrays_us": per["arrays"],
        "decode_arrays_ratio": statistics.median(
            b / a for a, b in zip(rows["loads_arrays"], rows["arrays"], strict=True)
        ),
    }


def folding(lines: list[bytes], rounds: int) -> dict[str, float]:
    """Apply all events of interleaved jobs, then the summary of each job, beside json.loads of the same lines."""
    rows: list[tuple[float, float, float]] = []
    events = [decode_event(line) for line in lines]
    states: dict[str, JobState] = {}
    for _ in range(rounds):
        loads = timed(lambda: each(json.loads, lines))
        states.clear()
        applied = timed(lambda: states.update(fold(events)))
        rows.append((loads, applied, timed(lambda: summaries(states))))
    count = len(lines)
    return {
        "events": count,
        "jobs": len(states),
        "json_loads_us": 1e6 * statistics.median(r[0] for r in rows) / count,
        "apply_us": 1e6 * statistics.median(r[1] for r in rows) / count,
        "summaries_us": 1e6 * statistics.median(r[2] for r in rows) / count,
        "fold_ratio": statistics.median((r[1] + r[2]) / r[0] for r in rows),
        "fold_events_per_s": count / statistics.median(r[1] + r[2] for r in rows),
    }


def state_sizes(rng: Random) -> dict[str, float]:
    """Bytes of the stored state of live jobs, settled with the default lateness of six hours."""
    sizes: dict[str, float] = {}
    for name, reports, every_s in (("one_hour", 240, 15), ("six_hours", 1440, 15), ("ten_days", 57_600, 15)):
        state, rules = JobState("job"), Rules()
        largest = 0
        for i, line in enumerate(job_lines("job", rng, reports=reports, every_s=every_s)[:-5]):
            apply(state, decode_event(line), rules)
            settle(state, rules)
            if i % 500 == 0:
                largest = max(largest, len(dump(state)))
        sizes[f"{name}_bytes"] = max(largest, len(dump(state)))
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--reports", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rng = Random(1)
    print(f"building {options.jobs} jobs ...", flush=True)
    lines = interleaved(options.jobs, options.reports, rng)
    results: dict[str, dict[str, float]] = {}
    print(f"decoding 110,000 events, {options.rounds} rounds ...", flush=True)
    results["decode"] = decoding(job_lines("job", rng, reports=100_000, every_s=15), options.rounds)
    print(f"folding {len(lines)} events of {options.jobs} interleaved jobs, {options.rounds} rounds ...", flush=True)
    results["fold"] = folding(lines, options.rounds)
    print("measuring stored states ...", flush=True)
    results["state"] = state_sizes(rng)
    limits = {
        "decode_event_ratio at most 1.5": results["decode"]["decode_event_ratio"] <= 1.5,
        "fold_ratio at most 4": results["fold"]["fold_ratio"] <= 4,
        "fold_events_per_s at least 100000": results["fold"]["fold_events_per_s"] >= 100_000,
        "ten_days_bytes at most 65536": results["state"]["ten_days_bytes"] <= 65_536,
    }
    save("core", results, limits)


if __name__ == "__main__":
    main()
