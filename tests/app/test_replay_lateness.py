"""`replay --lateness`: one pass, late events refused, memory for the live jobs only."""

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.replay import replay
from ettwatch_app.replay import Options, replay_files
from ettwatch_app.replay.problems import Problems
from ettwatch_app.replay.results import Results
from ettwatch_app.replay.streamed import Streamed
from ettwatch_app.replay.tally import Tally
from ettwatch_core import Rules, Verdict
from ettwatch_schemas import AttemptStarted, Event, Heartbeat, JobEnded, JobSubmitted, Progress, TrainingStarted
from ettwatch_schemas import encode_event as encoded
from support.jobs import random_job

T0 = 1_790_000_000_000_000
HOUR = 3_600_000_000
LATENESS = Options(rules=Rules(lateness=6 * HOUR), segments=True)
ANY = Options(rules=Rules(lateness=None), segments=True)


def lines_of(path: Path, options: Options) -> tuple[list[dict[str, object]], list[str]]:
    outcome = replay_files([str(path)], options)
    return [json.loads(line) for line in outcome.results], list(outcome.problems.texts())


def long_job(job: str, start: int, hours: int) -> list[Event]:
    """A job with a progress event a minute."""
    events: list[Event] = [
        JobSubmitted(id="s", job=job, ts=start, gpus=8),
        AttemptStarted(id="a", job=job, ts=start, attempt=0, gpus=8),
        TrainingStarted(id="t", job=job, ts=start + 60_000_000, attempt=0, position=0, report_every_s=60),
    ]
    for minute in range(hours * 60):
        ts = start + (minute + 2) * 60_000_000
        events.append(Progress(id=f"p{minute}", job=job, ts=ts, attempt=0, position=(minute + 1) * 10))
    events.append(JobEnded(id="e", job=job, ts=start + hours * HOUR + 3 * 60_000_000, outcome="succeeded"))
    return events


def write(path: Path, events: list[Event]) -> Path:
    path.write_bytes(b"".join(encoded(event) + b"\n" for event in events))
    return path


def test_settled_on_the_way_the_result_is_the_same(tmp_path: Path) -> None:
    jobs = [long_job(f"job-{number}", T0 + number * 5 * HOUR, 30) for number in range(4)]
    path = write(tmp_path / "events.jsonl", sorted((e for job in jobs for e in job), key=lambda e: e.ts))
    streamed, problems = lines_of(path, LATENESS)
    whole, _ = lines_of(path, ANY)
    assert problems == []
    assert streamed == whole


def test_random_jobs_within_the_lateness_come_out_the_same(tmp_path: Path) -> None:
    rng = Random(5)
    events = [event for number in range(30) for event in random_job(rng, f"job-{number}", size="medium")]
    events.sort(key=lambda event: event.ts)
    path = write(tmp_path / "events.jsonl", events)
    limit = max(event.ts for event in events) - min(event.ts for event in events)
    streamed, problems = lines_of(path, Options(rules=Rules(lateness=limit + 1), segments=True))
    whole, _ = lines_of(path, ANY)
    assert problems == []
    assert streamed == whole


def test_a_late_event_is_refused_with_its_line(tmp_path: Path) -> None:
    events = long_job("job", T0, 10)
    late = Heartbeat(id="late", job="job", ts=T0 + 1, attempt=0)
    path = write(tmp_path / "events.jsonl", [*events[:-1], late, events[-1]])
    _, problems = lines_of(path, LATENESS)
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}:{len(events)}: ts: {T0 + 1} is 36,")
    assert "more than --lateness allows" in problems[0]


def test_what_comes_for_a_dropped_job_is_refused_as_expired(tmp_path: Path) -> None:
    old = long_job("old", T0, 1)
    young = [*long_job("young", T0, 20), *long_job("other", T0, 20)]
    ghost = Heartbeat(id="ghost", job="old", ts=T0 + 20 * HOUR, attempt=0)
    path = write(tmp_path / "events.jsonl", [*sorted([*old, *young], key=lambda e: e.ts), ghost])
    got, problems = lines_of(path, LATENESS)
    assert [job["job"] for job in got] == ["old", "young", "other"]
    assert len(problems) == 1
    assert "'old' ended more than --lateness before the time that the file has reached" in problems[0]


def test_one_job_with_a_wrong_clock_closes_no_other(tmp_path: Path) -> None:
    mad = Heartbeat(id="mad", job="mad", ts=T0 + 10**6 * HOUR, attempt=0)
    ended = long_job("ended", T0, 1)
    late = Heartbeat(id="late", job="ended", ts=T0 + HOUR, attempt=0)
    path = write(tmp_path / "events.jsonl", [mad, *long_job("other", T0, 2), *ended, late])
    got, problems = lines_of(path, LATENESS)
    assert problems == []
    assert [job["status"] for job in got] == ["starting", "succeeded", "succeeded"]


def test_only_live_jobs_are_held() -> None:
    options = Options(rules=Rules(lateness=HOUR))
    streamed = Streamed(options, Problems(["events"]), Results())
    streamed.begin_file()
    most = 0
    jobs = [long_job(f"job-{number}", T0 + number * HOUR, 2) for number in range(40)]
    for place, event in enumerate(sorted((e for job in jobs for e in job), key=lambda e: e.ts)):
        streamed.add(place, event)
        most = max(most, streamed.live)
    assert most <= 6
    streamed.finish()
    assert streamed.live == 0


def test_a_lost_job_is_let_go_and_a_queued_one_is_not() -> None:
    streamed = Streamed(Options(rules=Rules(lateness=HOUR)), Problems(["events"]), Results())
    streamed.begin_file()
    streamed.add(0, JobSubmitted(id="s", job="queued", ts=T0))
    streamed.add(1, AttemptStarted(id="a", job="lost", ts=T0, attempt=0))
    for day in range(60):
        for job in ("speaks", "too"):
            streamed.add(day + 2, Heartbeat(id=f"h{day}", job=job, ts=T0 + day * 24 * HOUR, attempt=0))
    assert streamed.live == 3


def test_a_second_file_that_is_older_loses_nothing(tmp_path: Path) -> None:
    newer = write(tmp_path / "newer.jsonl", long_job("newer", T0 + 1_000 * HOUR, 3))
    older = write(tmp_path / "older.jsonl", long_job("older", T0, 3))
    outcome = replay_files([str(newer), str(older)], LATENESS)
    assert [json.loads(line)["status"] for line in outcome.results] == ["succeeded", "succeeded"]
    assert list(outcome.problems.texts()) == []


def test_none_is_no_limit(tmp_path: Path) -> None:
    late = Heartbeat(id="late", job="job", ts=T0 + 1, attempt=0)
    path = write(tmp_path / "events.jsonl", [*long_job("job", T0, 10), late])
    result = CliRunner().invoke(replay, [str(path), "--lateness", "none"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == CliRunner().invoke(replay, [str(path)]).stdout


@pytest.mark.parametrize(
    ("behind", "words"), [(-5, "would change"), (6 * HOUR, "would change"), (7 * HOUR, "25,200 s")]
)
def test_a_refusal_never_tells_of_less_than_is_allowed(behind: int, words: str) -> None:
    problems = Problems(["events"])
    tally = Tally(LATENESS, problems)
    event = Heartbeat(id="h", job="job", ts=T0, attempt=0)
    state = tally.add(1, event)
    state.newest = T0 + behind
    tally._refused(1, event, state, Verdict.LATE)
    (text,) = problems.texts()
    assert words in text
    assert ("behind" in text) == (words != "would change")
