import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import ParamSpec, TypeVar

import pytest

from ettwatch_app.up.commit import GaveUp
from ettwatch_app.up.statefile import look
from ettwatch_core import JobState, Rules, apply, snapshot
from support.jobs import random_job
from up.bench import Bench, limits
from up.fakes import away
from up.world import HOUR, SECOND, T0, Clock, as_lines, beat, beats

DAY = 24 * HOUR


def line(kind: str, at_s: float, job: str = "job", **more: object) -> bytes:
    told = {"v": 1, "id": f"{job}-{kind}-{at_s}", "kind": kind, "job": job, "ts": T0 + round(at_s * SECOND)}
    return json.dumps({**told, **more}).encode() + b"\n"


STARTED = line("job_submitted", 0) + line("attempt_started", 10, attempt=0)
TRAINING = STARTED + b"".join(
    [
        line("training_started", 20, attempt=0, position=0, report_every_s=30),
        line("progress", 30, attempt=0, position=100),
        line("progress", 60, attempt=0, position=200),
    ]
)
ENDED = (
    TRAINING + line("attempt_ended", 70, attempt=0, outcome="succeeded") + line("job_ended", 70, outcome="succeeded")
)


def training(job: str) -> bytes:
    return (
        line("job_submitted", 0, job=job)
        + line("attempt_started", 10, job=job, attempt=0)
        + line("training_started", 20, job=job, attempt=0, position=0, report_every_s=300)
    )


def test_what_is_read_is_published_as_the_core_has_it(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        events = [event for n in range(8) for event in random_job(Random(n), f"job{n}")]
        bench.put("a.jsonl", as_lines(events))
        bench.go()
        now = bench.clock.us
        for n in range(8):
            state = JobState(f"job{n}")
            for event in events:
                if event.job == state.job:
                    apply(state, event, Rules())
            expected = snapshot(state, Rules(), now).summary
            assert bench.store.jobs[state.job].model_dump(exclude={"version"}) == expected.model_dump(
                exclude={"version"}
            )
        assert len(bench.store.events) == len(events)


def test_running_jobs_move_by_the_clock_alone(tmp_path: Path) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 61 * SECOND)) as bench:
        bench.put("a.jsonl", TRAINING)
        bench.go(2)
        first = bench.store.jobs["job"]
        published = len(bench.store.published)
        bench.go(30)
        assert bench.store.jobs["job"].t1 > first.t1 + 20 * SECOND
        assert bench.store.jobs["job"].version > first.version
        assert 5 <= len(bench.store.published) - published <= 7
        bench.go(11 * 60, step=5)
        assert bench.status("job") == "silent"
        bench.go(6 * 3600, step=60)
        assert bench.status("job") == "lost"


class Skewed(Clock):
    """A clock that may be wrong; what runs by the monotonic one does not notice."""

    ahead_us = 0

    def now_us(self) -> int:
        return self.us + self.ahead_us


@pytest.mark.parametrize("restarted", [False, True], ids=["while it runs", "between two runs"])
@pytest.mark.parametrize(("ahead_us", "called"), [(HOUR, "silent"), (DAY, "lost")])
def test_a_clock_that_was_ahead_leaves_nothing_behind_when_it_is_set_right(
    tmp_path: Path, restarted: bool, ahead_us: int, called: str
) -> None:
    clock = Skewed(T0 + 61 * SECOND)
    with Bench(tmp_path, clock=clock) as bench:
        store = bench.store
        bench.put("a.jsonl", TRAINING)
        bench.go()
        clock.ahead_us = ahead_us
        bench.go(5)
        bench.go(60, step=10)
        assert bench.status("job") == called
        if not restarted:
            clock.ahead_us = 0
            bench.go(20)
    if restarted:
        clock.ahead_us = 0
        with Bench(tmp_path, store=store, clock=clock) as bench:
            bench.go(20)
    assert [told["level"] for told in bench.told("clock")] == ["warning"]
    latest = store.published[-1]
    assert latest.status == "training"
    assert latest.t1 == pytest.approx(clock.us, abs=16 * SECOND)


def test_idle_jobs_cost_nothing(tmp_path: Path) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 100 * SECOND)) as bench:
        queued = b"".join(line("job_submitted", 0, job=f"queued{n}") for n in range(50))
        bench.put("a.jsonl", ENDED + queued)
        bench.go()
        bench.store.published.clear()
        bench.go(55, step=0.5)
        assert bench.store.published == []
        bench.go(10)
        assert {summary.job for summary in bench.store.published} == {f"queued{n}" for n in range(50)}


def test_a_backlog_makes_nobody_silent(tmp_path: Path) -> None:
    with Bench(tmp_path, limits=limits(chunk_bytes=8 * 1024, batch_events=20, commit_s=0.0)) as bench:
        progress = b"".join(line("progress", 30 + n, attempt=0, position=n) for n in range(2_000))
        bench.put("a.jsonl", STARTED + progress)
        bench.go(10, step=0.5)
        assert 0 < len(bench.store.events) < 1_000
        assert {summary.status for summary in bench.store.published} <= {"starting", "training"}
        bench.go(200, step=0.5)
        assert bench.status("job") == "lost"
        assert len(bench.store.events) == 2_002


def test_a_backlog_of_many_jobs_makes_nobody_silent_either(tmp_path: Path) -> None:
    """A file of thirty jobs is copied in, one of which is known already: whose events are unread nobody knows."""
    names = [f"job{n}" for n in range(30)]
    clock = Clock(T0 + 60 * SECOND)
    with Bench(tmp_path, clock=clock, limits=limits(chunk_bytes=8 * 1024, batch_events=20, commit_s=0.0)) as bench:
        begins = b"".join(training(name) for name in names)
        bench.put("rank0.jsonl", training("both"))
        bench.go()
        clock.us = T0 + 8 * HOUR
        lives = b"".join(
            line("progress", second, job=name, attempt=0, position=second)
            for second in range(30, 8 * 3600, 300)
            for name in [*names, "both"]
        )
        bench.put("copied.jsonl", begins + lives)
        bench.store.published.clear()
        for _ in range(400):
            bench.go(0.5)
            if bench.runner.totals.taken == (training("both") + begins + lives).count(b"\n"):
                break
        else:
            raise AssertionError("not all was read")
        assert {summary.status for summary in bench.store.published} <= {"pending", "starting", "training"}
        assert len({summary.job for summary in bench.store.published}) == 31
        bench.go(7 * 3600, step=60)
        assert {summary.status for summary in bench.store.jobs.values()} == {"lost"}


def test_closed_jobs_are_dropped_and_their_late_events_refused(tmp_path: Path) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 100 * SECOND)) as bench:
        bench.put("a.jsonl", ENDED)
        bench.go()
        assert look(bench.folder.state).jobs == {"succeeded": 1}  # type: ignore[union-attr]
        bench.go(7 * 3600, step=60)
        kept = look(bench.folder.state)
        assert kept is not None
        assert (kept.jobs, kept.expired) == ({}, 1)
        bench.put("b.jsonl", line("heartbeat", 65, attempt=0) + ENDED)
        bench.go()
        assert [letter["code"] for letter in bench.letters()] == ["expired"]
        assert bench.runner.totals.duplicates == ENDED.count(b"\n")
        assert bench.status("job") == "succeeded"


def test_lost_jobs_are_kept_for_a_month_and_come_back(tmp_path: Path) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 100 * SECOND)) as bench:
        bench.put("a.jsonl", TRAINING)
        bench.go()
        bench.go(20 * DAY / SECOND, step=3600)
        assert bench.status("job") == "lost"
        bench.put("a.jsonl", line("progress", 20 * 86_400, attempt=0, position=300))
        bench.go()
        assert bench.status("job") == "training"
        bench.go(31 * DAY / SECOND, step=3600)
        assert look(bench.folder.state).jobs == {}  # type: ignore[union-attr]
        assert bench.status("job") == "lost"


def test_an_old_recording_is_kept_for_a_while(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        bench.put("a.jsonl", TRAINING)
        bench.go()
        bench.put("b.jsonl", line("progress", 90, attempt=0, position=300) + line("job_ended", 99, outcome="failed"))
        bench.go()
        assert bench.status("job") == "failed"
        assert bench.runner.totals.rejected == 0
        assert bench.store.jobs["job"].t1 == T0 + 99 * SECOND


def test_late_events_are_dead_letters_unless_they_are_stored(tmp_path: Path) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 8 * HOUR)) as bench:
        bench.put("a.jsonl", TRAINING + line("progress", 7 * 3600, attempt=0, position=9_999))
        bench.go()
        bench.put("b.jsonl", line("heartbeat", 33, attempt=0) + line("progress", 60, attempt=0, position=200))
        bench.go()
        (letter,) = bench.letters()
        assert (letter["code"], letter["line"], letter["file"]) == ("late", 1, str(bench.folder.spool / "b.jsonl"))
        assert "job-heartbeat-33" in letter["reason"]
        assert json.loads(letter["raw"])["kind"] == "heartbeat"


BAD = {
    "bad_json": b'{"v": 1, "id": \n',
    "not_utf8": b'{"v": 1, "id": "\xff\xfe"}\n',
    "unknown_kind": line("explosion", 1),
    "unknown_component": line("phase_started", 1, attempt=0, span="s", phase="coffee.break"),
    "wrong_time_unit": beat(1, ts=1_790_000_000),
    "missing_field": line("progress", 1, attempt=0),
    "out_of_range": line("progress", 1, attempt=0, position=-1),
    "bad_type": line("progress", 1, attempt=0, position="1"),
}
BAD_MORE = {
    "NaN": line("training_started", 1, attempt=0, position=0).replace(b'"position": 0', b'"position": NaN'),
    "attempt -1": line("heartbeat", 1, attempt=-1),
}


def test_bad_lines_are_kept_and_counted_and_cost_nobody_else(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        bench.put("bad.jsonl", b"".join([beat(0), *BAD.values(), *BAD_MORE.values(), beat(99)]))
        bench.go(6)
        letters = bench.letters()
        assert [letter["code"] for letter in letters[: len(BAD)]] == list(BAD)
        assert [letter["line"] for letter in letters] == list(range(2, 2 + len(BAD) + len(BAD_MORE)))
        assert set(bench.store.events) == {("job", "job-0"), ("job", "job-99")}
        (not_utf8,) = [letter for letter in letters if "raw_base64" in letter]
        assert not_utf8["code"] == "not_utf8"
        kept = look(bench.folder.state)
        assert kept is not None
        assert sum(count for count, _ in kept.rejects.values()) == len(letters)
        assert "rejected" in bench.told("progress")[-1]["message"]


def test_one_bad_event_in_an_array_is_told_by_its_index(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        good, bad = beat(1).strip(), beat(2, ts=5).strip()
        bench.put("a.jsonl", b"[" + good + b"," + bad + b"]\n")
        bench.go()
        (letter,) = bench.letters()
        assert (letter["index"], letter["field"]) == (1, "ts")
        assert list(bench.store.events) == [("job", "job-1")]
        assert json.loads(bench.store.events["job", "job-1"])["ts"] == T0 + SECOND


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_one_id_with_two_contents_hangs_on_no_order(tmp_path: Path, order: tuple[int, int]) -> None:
    told = [line("job_submitted", 0, gpus=8), line("job_submitted", 0, gpus=2)]
    with Bench(tmp_path) as bench:
        bench.put("a.jsonl", b"".join(told[n] for n in order))
        bench.go()
        assert bench.store.jobs["job"].gpus == 2
        assert "id_conflict" in bench.store.jobs["job"].flags
        assert bench.runner.totals.conflicts == 1


def test_a_full_disk_costs_time_and_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Bench(tmp_path) as bench:
        bench.put("a.jsonl", ENDED + b"nonsense\n")
        bench.writer.failures = [away(), away()]
        committer = bench.runner._committer
        monkeypatch.setattr(
            committer._kept, "commit", failing_once(committer._kept.commit, sqlite3.OperationalError("disk is full"))
        )
        monkeypatch.setattr(
            committer._letters,
            "settle",
            failing_once(committer._letters.settle, OSError(28, "No space left on device")),
        )
        bench.go()
        assert bench.status("job") == "succeeded"
        told = [entry["message"] for entry in bench.told("cannot_write")]
        assert len(told) == 4
        assert "ClickHouse is away" in told[0]
        assert "No space left" in told[2]
        assert "disk is full" in told[3]
        assert len(bench.told("writing_again")) == 3
        assert len(bench.letters()) == 1
        assert look(bench.folder.state).rejects["bad_json"][0] == 1  # type: ignore[union-attr]


P = ParamSpec("P")
R = TypeVar("R")


def failing_once(call: Callable[P, R], failure: BaseException) -> Callable[P, R]:
    left = [failure]

    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if left:
            raise left.pop()
        return call(*args, **kwargs)

    return called


def test_once_gives_up_after_three_tries_and_the_next_run_goes_on(tmp_path: Path) -> None:
    with Bench(tmp_path, once=True) as bench:
        bench.put("a.jsonl", ENDED)
        bench.writer.failures = [away()] * 9
        with pytest.raises(GaveUp, match="ClickHouse is away"):
            bench.runner.run()
    with Bench(tmp_path, once=True) as bench:
        bench.runner.run()
        assert bench.status("job") == "succeeded"
        assert bench.runner.totals.taken == ENDED.count(b"\n")


def test_a_crash_before_the_commit_doubles_neither_events_nor_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Bench(tmp_path) as bench:
        store = bench.store
        bench.put("a.jsonl", beats(1, 2) + b"nonsense\n")
        bench.go()
        bench.put("a.jsonl", beats(3) + b"more nonsense\n")
        kept = bench.runner._committer._kept
        monkeypatch.setattr(kept, "commit", failing_once(kept.commit, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            bench.go()
        assert len(bench.letters()) == 2
    with Bench(tmp_path, store=store) as bench:
        assert len(bench.letters()) == 1
        bench.go()
        assert [letter["line"] for letter in bench.letters()] == [3, 5]
        assert len(store.events) == 3
        assert bench.runner.totals.taken == 1
        assert store.jobs["job"].version >> 32 == 3


@pytest.mark.parametrize("committed", [True, False], ids=["after a commit", "before the first commit"])
def test_what_was_stored_and_not_committed_counts_although_its_file_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 95 * SECOND)) as bench:
        store, clock = bench.store, bench.clock
        if committed:
            bench.put("a.jsonl", TRAINING)
            bench.go()
        path = bench.put("b.jsonl", (b"" if committed else TRAINING) + line("progress", 90, attempt=0, position=300))
        kept = bench.runner._committer._kept
        monkeypatch.setattr(kept, "commit", failing_once(kept.commit, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            bench.go()
    path.unlink()
    with Bench(tmp_path, store=store, clock=clock) as bench:
        bench.go()
        lacked = 1 if committed else 1 + TRAINING.count(b"\n")
        assert [told["message"].split(" counted ")[1] for told in bench.told("resumed")] == [
            f"{lacked} event{'s' * (lacked > 1)} that it had stored"
        ]
        assert bench.runner.totals.taken == lacked
        assert bench.writer.events == {}
        assert store.jobs["job"].version >> 32 == TRAINING.count(b"\n") + 1
        # 20 to 30, to 60, to 90, and what the rate of then says of the time since
        assert store.jobs["job"].effective_s == pytest.approx(70 + 9, abs=3)
    with Bench(tmp_path, store=store, clock=clock) as bench:
        assert bench.told("resumed") == []


def test_a_lost_state_file_is_made_again_from_the_stored_events(tmp_path: Path) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 61 * SECOND)) as bench:
        store = bench.store
        path = bench.put("a.jsonl", TRAINING)
        bench.go()
    path.unlink()
    for name in ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm"):
        (bench.folder.root / name).unlink(missing_ok=True)
    with Bench(tmp_path, store=store, clock=Clock(T0 + 95 * SECOND)) as bench:
        assert len(bench.told("adopted")) == 1
        bench.put("b.jsonl", line("progress", 90, attempt=0, position=300))
        bench.go()
        assert bench.status("job") == "training"
        assert store.jobs["job"].version >> 32 == TRAINING.count(b"\n") + 1
        assert store.jobs["job"].effective_s == pytest.approx(76.5, abs=3)
    with Bench(tmp_path, store=store, clock=bench.clock) as bench:
        assert bench.told("adopted") == []


def test_states_that_are_not_in_use_wait_in_the_state_file(tmp_path: Path) -> None:
    with Bench(tmp_path, limits=limits(states=3)) as bench:
        for n in range(20):
            bench.put("a.jsonl", beats(1, job=f"job{n}"))
        bench.go()
        bench.put("a.jsonl", b"".join(beats(1, 2, job=f"job{n}") for n in range(20)))
        bench.go()
        assert bench.runner.totals.duplicates == 20
        assert bench.runner.totals.taken == 40
        assert len(bench.runner._jobs._jobs) <= 3
        assert bench.runner._jobs.count == 20


def test_the_log_is_calm(tmp_path: Path) -> None:
    with Bench(tmp_path, clock=Clock(T0 + 61 * SECOND)) as bench:
        bench.put("a.jsonl", TRAINING)
        bench.go(60)
        assert len(bench.told("progress")) == 1
        bench.put("a.jsonl", line("progress", 130, attempt=0, position=300))
        bench.go(60)
        assert len(bench.told("progress")) == 2
        assert "1 training" in bench.told("progress")[0]["message"]


def test_dead_letters_are_rotated(tmp_path: Path) -> None:
    with Bench(tmp_path, limits=limits(letters_bytes=1_000)) as bench:
        for n in range(30):
            bench.put("a.jsonl", b"nonsense %d\n" % n)
            bench.go(2)
        old = bench.folder.root / "rejected.jsonl.1"
        assert old.stat().st_size + bench.folder.rejected.stat().st_size < 4_000
    with Bench(tmp_path, store=bench.store) as bench:
        bench.put("a.jsonl", b"nonsense\n")
        bench.go()
        assert bench.letters()[-1]["raw"] == "nonsense"
        assert look(bench.folder.state).rejects["bad_json"][0] == 31  # type: ignore[union-attr]


def test_dead_letters_may_be_removed_or_emptied_at_any_time(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        clears: list[Callable[[], object]] = [
            bench.folder.rejected.unlink,
            lambda: bench.folder.rejected.write_bytes(b""),
        ]
        for n, clear in enumerate(clears):
            bench.put("a.jsonl", b"nonsense\n")
            bench.go()
            clear()
            bench.put("a.jsonl", b"more nonsense\n")
            bench.go()
            assert [letter["line"] for letter in bench.letters()] == [2 * n + 2]
