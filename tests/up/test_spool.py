import fcntl
import gzip
import os
import shutil
from pathlib import Path

import pytest
import zstandard

from ettwatch_app.up.settings import Limits
from up.world import HOUR, SDK_NAME, T0, Clock, Follower, beat, beats


def names(*numbers: int, job: str = "job") -> list[str]:
    return [f"{job}-{n}" for n in numbers]


class Writer:
    """What the SDK's file transport does: a file that is held locked while its writer lives."""

    def __init__(self, folder: Path, sequence: int = 0) -> None:
        self.path = folder / SDK_NAME.format(sequence)
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, data: bytes) -> None:
        os.write(self.fd, data)

    def die(self) -> None:
        os.close(self.fd)


def test_lines_are_read_while_they_are_written(tmp_path: Path) -> None:
    writer, follower = Writer(tmp_path), Follower(tmp_path)
    writer.write(beats(1, 2))
    assert follower.ids() == names(1, 2)
    half = beat(3)
    writer.write(half[:20])
    assert follower.ids() == []
    writer.write(half[20:] + beat(4))
    assert follower.ids() == names(3, 4)
    assert follower.commit() == []
    assert not follower.spool.behind
    writer.die()
    assert follower.ids(6.0) == []
    assert follower.commit() == [writer.path.name]
    assert not writer.path.exists()
    assert follower.rows == {}


def test_the_last_line_of_a_dead_writer_counts_without_its_newline(tmp_path: Path) -> None:
    writer, follower = Writer(tmp_path), Follower(tmp_path)
    writer.write(beat(1) + beat(2).rstrip())
    assert follower.ids() == names(1)
    writer.die()
    assert follower.ids(6.0) == names(2)
    assert follower.commit() == []
    assert follower.ids(60.0) == []
    assert follower.commit() == [writer.path.name]


def test_a_last_line_that_was_cut_off_is_reported(tmp_path: Path) -> None:
    writer, follower = Writer(tmp_path), Follower(tmp_path)
    writer.write(beat(1) + beat(2)[:30])
    writer.die()
    assert follower.ids() == names(1)
    messages = list(follower.read(60.0))
    (refusal,) = [refusal for message in messages for refusal in message.refusals]
    assert refusal.code == "truncated"
    assert messages[-1].raw == beat(2)[:30]
    assert messages[-1].number == 2
    assert follower.commit() == [writer.path.name]


def test_a_file_is_not_removed_before_it_is_committed(tmp_path: Path) -> None:
    writer, follower = Writer(tmp_path), Follower(tmp_path)
    writer.write(beats(1))
    writer.die()
    assert follower.ids() == names(1)
    follower.clock.wait(60.0)
    assert follower.spool.sweep() == []
    assert writer.path.exists()
    assert follower.commit() == [writer.path.name]


def test_files_put_there_by_hand_are_read_and_left(tmp_path: Path) -> None:
    (tmp_path / "plain.jsonl").write_bytes(beats(1))
    (tmp_path / "small.jsonl.gz").write_bytes(gzip.compress(beats(2)) + gzip.compress(beats(3)))
    (tmp_path / "small.jsonl.zst").write_bytes(zstandard.compress(beats(4)) + zstandard.compress(beats(5)))
    (tmp_path / ".draft.jsonl").write_bytes(beats(6))
    (tmp_path / "notes.txt").write_bytes(beats(7))
    (tmp_path / "folder.jsonl").mkdir()
    follower = Follower(tmp_path)
    assert sorted(follower.ids() + follower.ids(6.0)) == names(1, 2, 3, 4, 5)
    assert follower.commit() == []
    assert follower.ids(60.0) == []
    again = follower.restarted(tmp_path)
    assert again.ids() + again.ids(6.0) == []


def test_a_copy_that_is_still_being_made_is_waited_for(tmp_path: Path) -> None:
    packed = gzip.compress(beats(1, 2, 3))
    path, follower = tmp_path / "slow.jsonl.gz", Follower(tmp_path)
    path.write_bytes(packed[:30])
    assert follower.ids() == []
    path.write_bytes(packed)
    assert follower.ids(2.0) == []
    assert follower.ids(6.0) == names(1, 2, 3)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_damaged_packed_file_is_one_reject(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    suffix = "gz" if pack is gzip.compress else "zst"
    packed = pack(os.urandom(100_000).hex().encode())
    (tmp_path / f"half.jsonl.{suffix}").write_bytes(packed[: len(packed) // 2])
    (tmp_path / f"noise.jsonl.{suffix}").write_bytes(b"this is not packed at all")
    follower = Follower(tmp_path, once=True)
    messages = list(follower.read())
    reasons = [r.reason for m in messages for r in m.refusals if r.code == "damaged"]
    assert len(reasons) == 2
    assert any("ends before its packed data does" in reason for reason in reasons)
    follower.commit()
    assert follower.codes(60.0) == []
    assert follower.restarted(tmp_path, once=True).codes() == []


def test_a_packed_file_goes_on_where_it_was(tmp_path: Path) -> None:
    lines = beats(*range(3_000))
    (tmp_path / "big.jsonl.gz").write_bytes(gzip.compress(lines))
    limits = Limits(chunk_bytes=16 * 1024)
    follower = Follower(tmp_path, limits=limits, once=True)
    follower.spool.scan()
    follower.spool.fill()
    first = [event.id for _, message in follower.spool.take() for event in message.events]
    assert 0 < len(first) < 3_000
    follower.commit()
    again = follower.restarted(tmp_path, limits=limits, once=True)
    assert first + again.ids() == names(*range(3_000))
    again.commit()
    (tmp_path / "big.jsonl.gz").write_bytes(gzip.compress(lines + beat(3_000)))
    assert again.ids()[-1] == "job-3000"


def test_a_renamed_file_is_known_again(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(beats(1, 2))
    assert follower.ids() == names(1, 2)
    path = path.rename(tmp_path / "b.jsonl")
    with path.open("ab") as file:
        file.write(beat(3))
    assert follower.ids() == names(3)
    follower.commit()
    path = path.rename(tmp_path / "c.jsonl")
    with path.open("ab") as file:
        file.write(beat(4))
    assert follower.restarted(tmp_path).ids() == names(4)
    assert follower.spool.notices() == []


def test_an_inode_that_is_used_again_is_another_file(tmp_path: Path) -> None:
    first, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    first.write_bytes(beats(1, 2, 3))
    assert follower.ids() == names(1, 2, 3)
    follower.commit()
    # The new content under the old inode, as a file system may do it: longer than what was read.
    first.write_bytes(beats(*range(10, 20)))
    first.rename(tmp_path / "z.jsonl")
    again = follower.restarted(tmp_path)
    assert again.ids() == names(*range(10, 20))
    assert again.spool.notices() == []


@pytest.mark.parametrize("numbers", [(7,), (5, 6, 7, 8, 9)])
def test_a_file_replaced_in_place_is_read_anew_and_told(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(beats(1, 2, 3))
    assert follower.ids() == names(1, 2, 3)
    path.write_bytes(beats(*numbers))
    assert follower.ids() == names(*numbers)
    (notice,) = follower.spool.notices()
    assert "a.jsonl" in notice
    assert "in place" in notice


def test_a_file_cut_in_place_is_told(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(beats(1, 2, 3))
    assert follower.ids() == names(1, 2, 3)
    os.truncate(path, len(beat(1)))
    assert follower.ids() == names(1)
    assert f"cut from {len(beats(1, 2, 3))} to {len(beat(1))} bytes" in follower.spool.notices()[0]


def test_a_folder_moved_to_another_disk_goes_on(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    path, follower = tmp_path / "old" / "a.jsonl", Follower(tmp_path / "old")
    path.write_bytes(beats(1, 2))
    assert follower.ids() == names(1, 2)
    follower.commit()
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    shutil.rmtree(tmp_path / "old")
    with (tmp_path / "new" / "a.jsonl").open("ab") as file:
        file.write(beat(3))
    assert follower.restarted(tmp_path / "new").ids() == names(3)


def test_a_vanished_file_is_told_if_it_was_not_read(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(beats(1))
    follower.spool.scan()
    path.unlink()
    assert follower.ids() == []
    assert "bytes not yet handled" in follower.spool.notices()[0]


def test_places_of_vanished_files_are_forgotten_in_the_end(tmp_path: Path) -> None:
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(beats(1))
    assert follower.ids() == names(1)
    follower.commit()
    path.unlink()
    follower.ids()
    follower.commit()
    assert len(follower.rows) == 1
    later = follower.restarted(tmp_path)
    assert later.ids(8 * 24 * 3600.0) == []
    later.commit()
    assert later.rows == {}


def test_a_line_beyond_all_limits_is_skipped_without_being_held(tmp_path: Path) -> None:
    huge = b'{"id": "' + b"x" * 10_000_000 + b'"}\n'
    (tmp_path / "a.jsonl").write_bytes(beat(1) + huge + beat(2))
    follower = Follower(tmp_path)
    messages = list(follower.read())
    assert [event.id for message in messages for event in message.events] == names(1, 2)
    (letter,) = [message for message in messages if message.refusals]
    assert letter.refusals[0].code == "too_large"
    assert str(len(huge)) in letter.refusals[0].reason
    assert (letter.number, letter.start, letter.end) == (2, len(beat(1)), len(beat(1) + huge))
    assert len(letter.raw) == Limits().keep_letter_bytes
    assert messages[-1].number == 3
    follower.commit()
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(beat(3))
    assert follower.restarted(tmp_path).ids() == names(3)


def test_an_endless_line_waits_for_its_newline_or_the_end_of_its_writer(tmp_path: Path) -> None:
    writer, follower = Writer(tmp_path), Follower(tmp_path)
    for _ in range(10):
        writer.write(b"x" * 1_000_000)
    assert follower.codes() == []
    assert follower.codes(3.0) == []
    writer.write(b"x\n" + beat(1))
    messages = list(follower.read(3.0))
    assert [r.code for m in messages for r in m.refusals] == ["too_large"]
    assert [event.id for m in messages for event in m.events] == names(1)
    for _ in range(10):
        writer.write(b"y" * 1_000_000)
    assert follower.codes() == []
    writer.die()
    assert follower.codes(3.0) == []
    assert follower.codes(60.0) == ["too_large"]
    follower.clock.wait(3.0)
    assert follower.commit() == [writer.path.name]


def test_long_lines_within_the_limit_are_read_as_a_whole(tmp_path: Path) -> None:
    padded = beat(1, note="x" * 900_000)
    (tmp_path / "a.jsonl").write_bytes(padded + beat(2))
    assert Follower(tmp_path).ids() == names(1, 2)


def test_events_ahead_of_the_clock_are_refused(tmp_path: Path) -> None:
    clock = Clock(T0)
    (tmp_path / "a.jsonl").write_bytes(beats(599, 605))
    follower = Follower(tmp_path, clock=clock)
    clock.us = T0 - 1_000_000
    messages = list(follower.read(1.0))
    assert [event.id for message in messages for event in message.events] == names(599)
    assert [refusal.code for message in messages for refusal in message.refusals] == ["ahead_of_clock"]


def test_what_is_read_ahead_is_bounded(tmp_path: Path) -> None:
    for n in range(40):
        (tmp_path / f"{n}.jsonl").write_bytes(beats(*range(1000 * n, 1000 * n + 1000), job=f"job{n}"))
    limits = Limits(buffer_bytes=200_000, chunk_bytes=100_000)
    follower = Follower(tmp_path, limits=limits)
    follower.spool.scan()
    seen: list[str] = []
    rounds = 0
    while follower.spool.fill():
        assert sum(f.buffered for f in follower.spool._files.values()) <= 2 * limits.buffer_bytes
        seen += [event.id for _, message in follower.spool.take() for event in message.events]
        rounds += 1
    assert len(set(seen)) == len(seen) == 40_000
    assert rounds > 10


def test_no_file_starves_behind_a_large_one(tmp_path: Path) -> None:
    (tmp_path / "a-large.jsonl").write_bytes(beats(*range(20_000), job="large"))
    (tmp_path / "small.jsonl").write_bytes(beats(1, job="small"))
    follower = Follower(tmp_path, limits=Limits(chunk_bytes=64 * 1024))
    order = follower.ids()
    assert order.index("small-1") < 2_000
    assert len(order) == 20_001


def test_files_of_one_job_are_read_side_by_side_in_event_time(tmp_path: Path) -> None:
    hours = 60
    for rank in range(3):
        lines = [beat(h * 100 + rank, ts=T0 + h * HOUR + rank, rank=rank, note="x" * 400) for h in range(hours)]
        (tmp_path / f"rank{rank}.jsonl").write_bytes(b"".join(lines))
    slack = 3 * HOUR
    follower = Follower(tmp_path, slack=slack, limits=Limits(chunk_bytes=8 * 1024))
    newest = 0
    count = 0
    for message in follower.read():
        for event in message.events:
            assert event.ts >= newest - 2 * slack
            newest = max(newest, event.ts)
            count += 1
    assert count == 3 * hours


def test_files_that_wait_for_each_other_go_on(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(beat(1, "a", T0 + 100 * HOUR) + beat(2, "b", T0))
    (tmp_path / "2.jsonl").write_bytes(beat(3, "b", T0 + 100 * HOUR) + beat(4, "a", T0))
    assert sorted(Follower(tmp_path, slack=HOUR).ids()) == ["a-1", "a-4", "b-2", "b-3"]


def test_an_unreadable_file_is_told_once_and_read_when_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(beats(1))
    opened = os.open

    def refused(name: str, flags: int, mode: int = 0o777) -> int:
        if str(name).endswith("a.jsonl"):
            raise PermissionError(13, "Permission denied", name)
        return opened(name, flags, mode)

    monkeypatch.setattr(os, "open", refused)
    assert follower.ids() + follower.ids(20.0) == []
    assert follower.spool.notices() == ["a.jsonl: cannot be read: Permission denied"]
    monkeypatch.undo()
    assert follower.ids(20.0) == names(1)


def test_a_missing_folder_is_told_once_and_read_when_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    follower = Follower(folder)
    assert follower.ids() + follower.ids() == []
    assert len(follower.spool.notices()) == 1
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(beats(1))
    assert follower.ids() == names(1)


def test_an_empty_file_and_blank_lines_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "blank.jsonl").write_bytes(b"\n  \r\n" + b"\xef\xbb\xbf"[:0] + beat(1))
    (tmp_path / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + beat(2))
    dead = Writer(tmp_path)
    dead.die()
    follower = Follower(tmp_path)
    messages = list(follower.read())
    assert sorted(event.id for message in messages for event in message.events) == names(1, 2)
    assert [refusal for message in messages for refusal in message.refusals] == []
    follower.clock.wait(60.0)
    assert follower.commit() == [dead.path.name]


def test_files_take_turns_also_when_rounds_are_short(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_bytes(beats(*range(2_000), job=name))
    follower = Follower(tmp_path, limits=Limits(chunk_bytes=8 * 1024))
    follower.clock.wait(1.0)
    follower.spool.scan()
    seen: list[str] = []
    while follower.spool.fill():
        for n, (_, message) in enumerate(follower.spool.take()):
            seen += [event.job for event in message.events]
            if n == 20:
                break
    assert len(seen) == 6_000
    assert min(seen[:1_500].count(job) for job in "abc") > 300
