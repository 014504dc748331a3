"""What is made of the end of standard error, of error files, and of where loops stand. No processes."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch.hang import HangWatch, Patience
from ettwatch.lastwords import in_error_file, in_text
from ettwatch.moving import Place, leave_place, read_places
from ettwatch.ranks import Rank, Ranks, by_attempt
from ettwatch.relay import TAIL_BYTES, Tail
from ettwatch.runfolder import Note
from ettwatch.verdict import Seen, failure, judge

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\n'
SUMMARY = """
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_00:00:00
  host      : vm
  rank      : 5 (local_rank: 1)
  exitcode  : -9 (pid: 28819)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 28819
============================================================
"""


@pytest.mark.parametrize(
    ("text", "cause", "message"),
    [
        (f"{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB.", "gpu_memory", "CUDA"),
        (f"[rank3]: {TRACEBACK}[rank3]: torch.OutOfMemoryError: CUDA out of memory.\nmore\n", "gpu_memory", "CUDA"),
        ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while", "gpu_memory", "RESOURCE"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", "host_memory", "oom_kill"),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.", "host_memory", "DataLoader"),
        (f"{TRACEBACK}ValueError: mine", "user_code", "ValueError: mine"),
        (f"{TRACEBACK}KeyError", "user_code", "KeyError"),
        (f"{TRACEBACK}my.own.Fault: {{x}}", "user_code", "Fault: {x}"),
        (f"{TRACEBACK}OSError: [Errno 28] No space left on device: 'x'", "storage", "No space"),
        (f"{TRACEBACK}MemoryError", "host_memory", "MemoryError"),
        (f"{TRACEBACK}ConnectionResetError: [Errno 104] reset", "network", "reset"),
        (f"{TRACEBACK}RuntimeError: NCCL error in: x", "network", "NCCL"),
        (f"{TRACEBACK}ValueError: root\n\n{TRACEBACK}RuntimeError: Connection closed by peer", "user_code", "root"),
        (
            f"{TRACEBACK}torch.distributed.elastic.errors.ChildFailedError: \n{SUMMARY}",
            "unknown",
            "rank 5 was ended by SIGKILL",
        ),
    ],
)
def test_the_end_of_standard_error(text: str, cause: str, message: str) -> None:
    found = in_text(text)
    assert found is not None
    assert found.cause == cause
    assert message in found.message


@pytest.mark.parametrize("text", ["", "nothing here\n", "Error: usage\n", f"{TRACEBACK}", "out of\nmemory"])
def test_what_says_nothing(text: str) -> None:
    assert in_text(text) is None


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    in_text(text)
    in_text(f"{TRACEBACK}{text}")


def test_an_error_file_of_torchelastic(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    assert in_error_file(str(path)) is None
    path.write_text(json.dumps({"message": {"message": "OutOfMemoryError: CUDA out of memory", "extraInfo": {}}}))
    found = in_error_file(str(path))
    assert (found and found.cause, found and found.first) == ("gpu_memory", True)
    for text in ("{", "[]", "{}", '{"message": 3}', '{"message": ""}', '{"message": {"message": null}}'):
        path.write_text(text)
        assert in_error_file(str(path)) is None
    path.write_text('{"message": "SIGABRT received"}')
    found = in_error_file(str(path))
    assert (found and found.cause) == "unknown"


def test_a_consequence_gives_way_to_what_was_printed() -> None:
    network, mine = Note(1, "failed", "network", "closed by peer"), Note(1, "failed", "user_code", "ValueError")
    memory, killed = in_text("torch.OutOfMemoryError: CUDA out of memory"), in_text(SUMMARY)
    assert failure(network, memory)[0] == "gpu_memory"
    assert failure(network, killed) == ("unknown", "rank 5 was ended by SIGKILL")
    assert failure(mine, memory) == ("user_code", "ValueError")
    assert failure(None, memory)[0] == "gpu_memory"
    assert failure(network, None) == ("network", "closed by peer")
    assert failure(None, None) == (None, None)


def test_who_is_ended_for_hanging_has_failed_unless_he_was_to_end_anyway() -> None:
    hung = Seen(None, 15, [], hung="no progress for 5 s")
    assert judge(hung, {15}, "unknown")[:2] == ("failed", "timeout")
    assert judge(hung._replace(received=[15]), {15}, "unknown").outcome == "preempted"


@given(st.lists(st.binary(max_size=40).map(lambda data: data + b"\n"), max_size=30))
def test_a_tail_is_the_end_of_what_came(pieces: list[bytes]) -> None:
    tail = Tail()
    for piece in pieces:
        tail.take(piece)
    assert b"".join(pieces).endswith(tail.read()[-200:])


def test_what_tells_of_memory_is_kept_whatever_follows() -> None:
    tail = Tail()
    tail.take(b"x\ntorch.OutOfMem")
    tail.take(b"oryError: CUDA out of memory\n")
    for _ in range(3 * TAIL_BYTES // 1000):
        tail.take(b"y" * 999 + b"\n")
    kept = tail.read()
    assert kept.startswith(b"torch.OutOfMemoryError: CUDA out of memory\n")
    assert len(kept) < TAIL_BYTES + 200
    for _ in range(1000):
        tail.take(b"out of memory\n")
    assert len(tail.read()) < TAIL_BYTES + 60 * 14


def test_places_are_left_and_read(tmp_path: Path) -> None:
    folder = str(tmp_path)
    leave_place(folder, 2, 0, Place("training", 123456, 7))
    leave_place(folder, 2, 0, Place("training", 5, 8))
    leave_place(folder, 1, 0, Place("ended", 1, 1))
    (tmp_path / "moving-2-9").write_text("half")
    assert read_places(folder, 2) == {"moving-2-0": Place("training", 5, 8)}
    leave_place(None, 0, 0, Place("training", 0, 0))
    assert read_places(str(tmp_path / "none"), 0) == {}


def at(position: int, state: str = "training") -> dict[str, Place]:
    return {"moving-0-0": Place(state, position, position)}


def test_a_loop_that_stands_still_hangs() -> None:
    watch = HangWatch(Patience(hang_after_s=10, start_within_s=100), 0)
    assert watch.look({}, 99) is None
    assert watch.look(at(1), 99.5) is None
    assert watch.look(at(1), 109) is None
    assert watch.look(at(1), 110) == "no progress for 10 s after step 1 (position 1)"
    assert watch.look(at(2), 200) is None
    assert watch.look(at(2), 209) is None
    assert watch.look(at(2, "ended"), 215) is None
    assert watch.look(at(2, "ended"), 9999) is None


def test_a_start_that_takes_too_long_hangs() -> None:
    watch = HangWatch(Patience(start_within_s=100), 50)
    assert watch.look({}, 149) is None
    assert watch.look({}, 150) == "no step within 100 s of the start"
    assert HangWatch(Patience(), 0).look({}, 1e9) is None
    lame = HangWatch(Patience(start_within_s=1), 0)
    assert lame.look(at(1), 0.5) is None
    assert lame.look(at(1), 1e6) is None


def test_one_rank_that_moves_is_enough() -> None:
    watch = HangWatch(Patience(hang_after_s=10), 0)
    places = {"a": Place("training", 1, 1), "b": Place("training", 1, 1)}
    watch.look(places, 0)
    for second in range(1, 100):
        assert watch.look({**places, "b": Place("training", second + 1, 1)}, second * 5) is None


def test_ranks_are_found_by_their_environment(tmp_path: Path) -> None:
    def process(pid: int, *env: str, ticks: int = 100, flags: int = 0) -> None:
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        (tmp_path / str(pid) / "environ").write_bytes(b"".join(item.encode() + b"\0" for item in env))
        fields = " ".join(["S", *["0"] * 5, str(flags), *["0"] * 12, str(ticks)])
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a ) name) {fields}")

    ours = "ETTWATCH_RUN_DIR=/run/x"
    elastic = ("TORCHELASTIC_RUN_ID=none", "WORLD_SIZE=4", "ETTWATCH_ATTEMPT=3")
    process(10, ours, ticks=50)
    process(11, ours, *elastic, "TORCHELASTIC_RESTART_COUNT=0", ticks=60)
    process(12, ours, *elastic, "TORCHELASTIC_RESTART_COUNT=1", ticks=90)
    process(13, ours, *elastic, "TORCHELASTIC_RESTART_COUNT=1", ticks=80)
    process(14, "ETTWATCH_RUN_DIR=/run/xy", *elastic)
    process(15, "no equals sign", ours, *elastic, "TORCHELASTIC_RESTART_COUNT=many", ticks=70)
    (tmp_path / "self").mkdir()
    ranks = Ranks("/run/x", str(tmp_path))
    for _ in range(2):
        found = ranks.look()
        assert {rank.pid for rank in found} == {11, 12, 13, 15}
        assert list(by_attempt(found)) == [Rank(11, 60, 3, 4), Rank(13, 80, 4, 4)]
    # In the middle of becoming a rank a process has no environment; a thread of the kernel never has one.
    process(16, ticks=75)
    process(17, flags=0x00200040)
    assert len(ranks.look()) == 4
    for pid in (16, 17):
        process(pid, ours, *elastic, "TORCHELASTIC_RESTART_COUNT=2", ticks=95)
    assert {rank.pid for rank in ranks.look()} == {11, 12, 13, 15, 16}
    assert Ranks("", str(tmp_path)).look() == []
    assert Ranks("/run/x", str(tmp_path / "none")).look() == []
    assert os.getpid() not in {rank.pid for rank in Ranks("/run/x").look()}
