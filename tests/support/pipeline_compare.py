"""Whether what is stored is what the same events give by themselves: row by row, by the core and by `replay`."""

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import JobSummary, decode_event, encode_event
from support.clickhouse import Truth, should_be
from support.pipeline_feed import Feed, as_lines
from support.pipeline_programs import COMMAND
from support.pipeline_rows import Stored

__all__ = ["Comparison", "compare_events", "compare_replay", "compare_rows"]

_RULES: Final = Rules(lateness=None)
_CLOSED: Final = ("succeeded", "failed", "cancelled", "lost")
_MOST_OPEN: Final = 5
_REPLAY_S: Final = 600


@dataclass(slots=True)
class Comparison:
    """What was compared, and where it differed.

    Attributes:
        jobs: How many.
        events: How many distinct events were compared.
        rows: How many rows of jobs, attempts, segments and phases.
        replayed: How many summaries were compared with those of `replay`.
        letters: How many dead letters.
        doubled_letters: How many of them came twice.
        differences: One line each.
    """

    jobs: int = 0
    events: int = 0
    rows: int = 0
    replayed: int = 0
    letters: int = 0
    doubled_letters: int = 0
    differences: list[str] = field(default_factory=list)

    def differ(self, text: str) -> None:
        """Note a difference."""
        self.differences.append(text)


def true_of(job: str, told: set[bytes], now: int) -> tuple[Truth, bool]:
    """Return what the events of a job give at a time (µs), and whether two of them have one id."""
    state = JobState(job)
    for line in sorted(told):
        apply(state, decode_event(line), _RULES)
    return should_be(snapshot(state, _RULES, now)), "id_conflict" in state.flags


def compare_rows(feed: Feed, stored: Mapping[str, Stored], out: Comparison) -> None:
    """Compare the rows of every job with what the core gives for the same events at the same time."""
    for job in sorted({*feed.told, *stored}):
        if job not in stored:
            out.differ(f"{job}: it has no rows")
            continue
        if job not in feed.told:
            out.differ(f"{job}: it has rows, but no good event was sent")
            continue
        found = stored[job]
        truth, conflict = true_of(job, feed.told[job], found.as_of)
        out.jobs += 1
        out.rows += 1 + len(truth.attempts) + len(truth.segments) + len(truth.spans)
        if conflict:
            # An event that comes again after the other one of its id counts again.
            truth, got = _unversioned(truth), _unversioned(found.truth)
        else:
            got = found.truth
        if got != truth:
            out.differ(f"{job}: {_first_difference(got, truth)} (as of {found.as_of}, {len(feed.told[job])} events)")


def compare_events(feed: Feed, stored: Mapping[str, list[bytes]], out: Comparison) -> None:
    """Compare the events that are stored with those that were sent."""
    for job in sorted({*feed.told, *stored}):
        told = feed.told.get(job, set())
        found = Counter(encode_event(decode_event(raw)) for raw in stored.get(job, ()))
        out.events += len(told)
        if missing := told - found.keys():
            out.differ(f"{job}: {len(missing)} of {len(told)} events are missing, such as {min(missing)[:160]!r}")
        if more := found.keys() - told:
            out.differ(f"{job}: {len(more)} events that were not sent, such as {min(more)[:160]!r}")
        if doubled := [raw for raw, times in found.items() if times > 1]:
            out.differ(f"{job}: {len(doubled)} events are there twice, such as {doubled[0][:160]!r}")


def compare_replay(feed: Feed, stored: Mapping[str, Stored], out: Comparison) -> None:
    """Compare the summaries with those of `ettwatch replay`: of all jobs that are over, and of a few others."""
    over = [job for job, found in stored.items() if found.truth.summary.status in _CLOSED and job in feed.told]
    latest = max((found.as_of for found in stored.values()), default=0)
    _replayed(feed, over, latest, stored, out)
    for job in sorted(set(stored) & set(feed.told) - set(over))[:_MOST_OPEN]:
        _replayed(feed, [job], stored[job].as_of, stored, out)


def _replayed(feed: Feed, jobs: list[str], now: int, stored: Mapping[str, Stored], out: Comparison) -> None:
    if not jobs:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"".join(as_lines(feed.told[job]) for job in jobs))
        command = [str(COMMAND), "replay", str(path), "--format", "json", "--now", str(now)]
        done = subprocess.run(command, capture_output=True, timeout=_REPLAY_S)
    if done.returncode not in (0, 1):  # 1: two events have one id, which is told and does no harm
        out.differ(f"replay ended with exit code {done.returncode}: {done.stderr.decode()[:500]}")
    for line in done.stdout.splitlines():
        summary = JobSummary.model_validate(json.loads(line))
        found = stored[summary.job].truth.summary
        out.replayed += 1
        if found.model_copy(update={"version": 0}) != summary.model_copy(update={"version": 0}):
            out.differ(f"{summary.job}: replay says otherwise: {_fields(_dump(found), _dump(summary))}")


def _unversioned(truth: Truth) -> Truth:
    return truth._replace(summary=truth.summary.model_copy(update={"version": 0}))


def _first_difference(found: Truth, truth: Truth) -> str:
    """Say in one line where two truths differ."""
    if found.summary != truth.summary:
        return f"summary: {_fields(_dump(found.summary), _dump(truth.summary))}"
    for name in ("attempts", "segments", "spans"):
        got: list[Any] = getattr(found, name)
        wanted: list[Any] = getattr(truth, name)
        if got != wanted:
            place = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), -1)
            if place < 0:
                return f"{name}: {len(got)} rows, not {len(wanted)}"
            return f"{name}: {len(got)} rows (wanted {len(wanted)}), [{place}] is {got[place]!r}, not {wanted[place]!r}"
    return "nothing"


def _dump(summary: JobSummary) -> dict[str, Any]:
    return summary.model_dump()


def _fields(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    differ = [f"{name}={found[name]!r}, not {wanted[name]!r}" for name in wanted if found[name] != wanted[name]]
    return "; ".join(differ)[:600]
