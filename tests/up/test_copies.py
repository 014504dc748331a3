"""Files that grow without a lock: copied in under any name, or written by hand with long pauses."""

import os
import time
from pathlib import Path

import pytest

from up.world import SDK_NAME, Follower, beat, beats

NAMES = pytest.mark.parametrize("name", [SDK_NAME.format(0), "hand.jsonl"])


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def ids(*numbers: int) -> list[str]:
    return [f"job-{n}" for n in numbers]


def test_a_copy_under_an_sdk_name_is_not_removed_while_it_is_made(tmp_path: Path) -> None:
    path, follower = tmp_path / SDK_NAME.format(0), Follower(tmp_path)
    for n in range(5):
        append(path, beat(n))
        assert follower.ids(30.0) == ids(n)
        assert follower.commit() == []
    assert follower.ids(58.0) == []
    assert follower.commit() == []
    assert follower.ids(3.0) == []
    assert follower.commit() == [path.name]
    assert follower.rows == {}


def test_once_reads_a_fresh_copy_and_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / SDK_NAME.format(0)
    path.write_bytes(beat(1) + beat(2)[:30])
    follower = Follower(tmp_path, once=True)
    messages = list(follower.read())
    assert [event.id for message in messages for event in message.events] == ids(1)
    assert [refusal.code for message in messages for refusal in message.refusals] == ["truncated"]
    assert follower.commit() == []
    append(path, beat(2)[30:] + beat(3))
    again = follower.restarted(tmp_path, once=True)
    assert again.ids() == ids(2, 3)
    assert again.commit() == []
    assert again.spool.notices() == []


def test_once_removes_a_file_that_has_lain_there(tmp_path: Path) -> None:
    path, an_hour_ago = tmp_path / SDK_NAME.format(0), time.time() - 3600
    path.write_bytes(beat(1))
    os.utime(path, (an_hour_ago, an_hour_ago))
    follower = Follower(tmp_path, once=True)
    assert follower.ids() == ids(1)
    assert follower.commit() == [path.name]


@NAMES
def test_a_pause_within_a_line_costs_nothing(tmp_path: Path, name: str) -> None:
    path, follower = tmp_path / name, Follower(tmp_path)
    append(path, beat(1) + beat(2)[:40])
    assert follower.ids() == ids(1)
    assert list(follower.read(50.0)) == []
    append(path, beat(2)[40:])
    assert follower.ids() == ids(2)


@NAMES
@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_line_that_is_completed_after_it_was_given_up_is_read_whole(tmp_path: Path, name: str, cut: int) -> None:
    path, follower = tmp_path / name, Follower(tmp_path)
    line = beat(2, note="x" * 1_000)
    append(path, beat(1) + line[: len(line) - 2 if cut < 0 else cut])
    assert follower.ids() == ids(1)
    assert follower.codes(60.0) == ["truncated"]
    assert follower.codes(3.0) == []
    append(path, line[len(line) - 2 if cut < 0 else cut :] + beat(3))
    messages = list(follower.read())
    assert [event.id for message in messages for event in message.events] == ids(2, 3)
    assert [message.number for message in messages] == [2, 3]
    assert [refusal for message in messages for refusal in message.refusals] == []


def test_a_first_line_that_is_completed_late_is_read_whole(tmp_path: Path) -> None:
    path, follower = tmp_path / "hand.jsonl", Follower(tmp_path)
    append(path, beat(1)[:50])
    assert follower.codes(0.5) == []
    assert follower.codes(61.0) == ["truncated"]
    follower.commit()
    append(path, beat(1)[50:])
    assert follower.restarted(tmp_path).ids() == ids(1)


def test_a_newline_that_comes_late_doubles_nothing(tmp_path: Path) -> None:
    path, follower = tmp_path / "hand.jsonl", Follower(tmp_path)
    append(path, beat(1).rstrip())
    assert follower.ids() + follower.ids(6.0) == ids(1)
    append(path, b"\n" + beats(2))
    assert follower.ids() == ids(2)


def test_symbolic_links_are_not_read_and_told_once(tmp_path: Path) -> None:
    secret, spool = tmp_path / "secret", tmp_path / "spool"
    secret.write_bytes(beat(1) + b"password\n")
    spool.mkdir()
    (spool / "link.jsonl").symlink_to(secret)
    (spool / SDK_NAME.format(0)).symlink_to(secret)
    (spool / "dangling.jsonl").symlink_to(tmp_path / "nothing")
    follower = Follower(spool, once=True)
    assert list(follower.read()) + list(follower.read(60.0)) == []
    notices = follower.spool.notices()
    assert len(notices) == 3
    assert all("symbolic link" in notice for notice in notices)
