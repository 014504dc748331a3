import signal
from pathlib import Path

import pytest

from ettwatch.book import claim, conclude
from ettwatch.cgroup import oom_kills
from ettwatch.runfolder import Note, latest_attempt, leave_attempt, leave_note, read_note
from ettwatch.verdict import Seen, judge

TERM, INT, HUP, USR1, KILL = signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL


def failed(cause: str | None, message: str = "told") -> Note:
    return Note(1, "failed", cause, message)


def over(outcome: str) -> Note:
    return Note(1, outcome, None, None)


@pytest.mark.parametrize(
    ("seen", "outcome", "cause"),
    [
        (Seen(0, None), "succeeded", "unknown"),
        (Seen(0, None, ended=over("succeeded")), "succeeded", "unknown"),
        (Seen(0, None, ended=over("cancelled")), "cancelled", "unknown"),
        (Seen(0, None, failed=failed("storage")), "failed", "storage"),
        (Seen(1, None), "failed", "unknown"),
        (Seen(1, None, failed=failed("user_code")), "failed", "user_code"),
        (Seen(1, None, failed=failed(None)), "failed", "unknown"),
        (Seen(126, None), "failed", "config"),
        (Seen(127, None), "failed", "config"),
        (Seen(127, None, failed=failed("user_code")), "failed", "user_code"),
        (Seen(None, KILL), "failed", "unknown"),
        (Seen(None, KILL, oom_killed=True), "failed", "host_memory"),
        (Seen(137, None, oom_killed=True), "failed", "host_memory"),
        (Seen(137, None), "failed", "unknown"),
        (Seen(1, None, oom_killed=True), "failed", "host_memory"),  # torchrun, one of whose ranks was killed
        (Seen(1, None, oom_killed=True, failed=failed("network")), "failed", "host_memory"),
        (Seen(1, None, oom_killed=True, failed=failed("gpu_memory")), "failed", "gpu_memory"),
        (Seen(0, None, oom_killed=True), "succeeded", "unknown"),
        (Seen(None, TERM, [TERM]), "preempted", "capacity"),
        (Seen(143, None, [TERM]), "preempted", "capacity"),
        (Seen(0, None, [TERM]), "preempted", "capacity"),
        (Seen(0, None, [TERM], ended=over("succeeded")), "succeeded", "unknown"),
        (Seen(1, None, [TERM], failed=failed("user_code")), "preempted", "capacity"),
        (Seen(None, TERM), "failed", "unknown"),
        (Seen(None, INT, [INT]), "cancelled", "unknown"),
        (Seen(None, INT), "cancelled", "unknown"),
        (Seen(130, None), "cancelled", "unknown"),
        (Seen(None, HUP, [HUP]), "cancelled", "unknown"),
        (Seen(None, KILL, [INT, TERM]), "cancelled", "unknown"),
        (Seen(0, None, [USR1]), "succeeded", "unknown"),
        (Seen(1, None, [USR1]), "failed", "unknown"),
    ],
)
def test_outcome_and_cause(seen: Seen, outcome: str, cause: str) -> None:
    found = judge(seen, {TERM}, "capacity")
    assert (found.outcome, found.cause) == (outcome, cause)


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (Seen(None, TERM, [TERM]), "cancelled"),
        (Seen(0, None, [USR1]), "preempted"),
        (Seen(None, TERM, [USR1, TERM]), "cancelled"),
        (Seen(None, INT, [INT, USR1]), "cancelled"),
    ],
)
def test_another_signal_may_mean_a_preemption(seen: Seen, outcome: str) -> None:
    assert judge(seen, {USR1}, "unknown").outcome == outcome


@pytest.mark.parametrize(
    ("seen", "exit_code", "number", "message"),
    [
        (Seen(0, None), 0, None, None),
        (Seen(3, None), 3, None, None),
        (Seen(None, KILL), None, 9, "ended by SIGKILL"),
        (Seen(137, None), 137, 9, "ended by SIGKILL"),
        (Seen(None, 40), None, 40, "ended by signal 40"),
        (Seen(255, None), 255, None, None),
        (Seen(1, None, failed=failed("storage", "full")), 1, None, "full"),
        (Seen(None, TERM, [TERM]), None, 15, "the launcher was sent SIGTERM"),
        (Seen(127, None), 127, None, "the command was not found"),
    ],
)
def test_what_is_told_beside_it(seen: Seen, exit_code: int | None, number: int | None, message: str | None) -> None:
    found = judge(seen, {TERM}, "unknown")
    assert (found.exit_code, found.signal, found.message) == (exit_code, number, message)


def counters(root: Path, groups: str, files: dict[str, str]) -> int | None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (root / "membership").write_text(groups)
    return oom_kills(str(root), str(root / "membership"))


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.events": "low 0\noom 4\noom_kill 3\noom_group_kill 0\n"}, 3),
        ("0::/outside\n", {"memory.events": "oom_kill 2\n"}, 2),
        ("5:cpu:/\n4:memory:/x\n0::/\n", {"memory/x/memory.oom_control": "under_oom 0\noom_kill 5\n"}, 5),
        ("4:hugetlb,memory:/gone\n0::/\n", {"memory/memory.oom_control": "oom_kill 6\n"}, 6),
        ("0::/a\n", {"a/memory.events": "oom_kill many\n"}, None),
        ("0::/a\n", {}, None),
        ("nonsense\n", {}, None),
    ],
)
def test_kills_for_memory_are_read(tmp_path: Path, groups: str, files: dict[str, str], expected: int | None) -> None:
    assert counters(tmp_path, groups, files) == expected


def test_without_control_groups_there_is_no_counter(tmp_path: Path) -> None:
    assert oom_kills(str(tmp_path), str(tmp_path / "missing")) is None


def test_ranks_leave_word_and_the_first_to_fail_is_believed(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert (latest_attempt(folder, 3), read_note(folder, "failed", 3)) == (3, None)
    for attempt in (3, 10, 4):
        leave_attempt(folder, attempt)
    leave_note(folder, "failed", 10, 0, Note(20, "failed", "network", "peer gone"))
    leave_note(folder, "failed", 10, 7, Note(10, "failed", "user_code", "ValueError: mine"))
    leave_note(folder, "failed", 1, 0, Note(1, "failed", "storage", "another attempt's"))
    (tmp_path / "failed-10-9").write_text("{")
    (tmp_path / "failed-10-8").write_text("[]")
    (tmp_path / "failed-10-6.tmp").write_text("half")
    assert latest_attempt(folder, 3) == 10
    assert read_note(folder, "failed", 10) == Note(10, "failed", "user_code", "ValueError: mine")
    assert read_note(folder, "ended", 10) is None
    assert latest_attempt(str(tmp_path / "gone"), 2) == 2


def test_word_of_another_version_is_taken_as_far_as_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "failed-0-0").write_text('{"ts": 5, "outcome": "exploded", "cause": "gremlins", "message": ""}')
    assert read_note(str(tmp_path), "failed", 0) == Note(5, "failed", None, None)


def test_the_book_gives_each_number_once(tmp_path: Path) -> None:
    spool = str(tmp_path / "spool")
    assert claim(spool, "job", 0) == (0, False, None)
    assert claim(spool, "job", 0) == (1, True, None)
    conclude(spool, "job", 4, "failed")
    conclude(spool, "job", 2, "succeeded")  # of an attempt that another has overtaken
    assert claim(spool, "job", 0) == (5, True, "failed")
    assert claim(spool, "job", 100) == (100, True, None)
    assert claim(spool, "other/../job", 7) == (7, False, None)
    for path in (tmp_path / "spool" / ".attempts").iterdir():
        path.write_text("[]")
    assert claim(spool, "job", 3) == (3, False, None)
