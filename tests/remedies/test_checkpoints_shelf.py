"""What is in the folder: damage, leftovers, retention, pins, a full disk."""

from __future__ import annotations

import errno
import json
import logging
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_trainer.remedies.checkpoints import Checkpointer, CheckpointError, pin, unpin
from ettwatch_trainer.remedies.checkpoints import marker as markers
from ettwatch_trainer.remedies.checkpoints.marker import Marker
from ettwatch_trainer.remedies.checkpoints.shelf import Shelf

pytestmark = pytest.mark.torch


def saved(folder: Path, steps: int, keep: int = 2) -> list[Path]:
    """Save steps 1 to `steps`; the folders that are there then, oldest first."""
    checkpointer = Checkpointer(folder, mode="blocking", keep=keep)
    for step in range(1, steps + 1):
        assert checkpointer.save({"a": torch.full((100,), step), "b": step}, step=step, position=step).ok()
    return sorted(path for path in folder.iterdir() if path.is_dir())


def steps_there(folder: Path) -> list[int]:
    return sorted(markers.whole(path).step for path in folder.iterdir())


def truncate(path: Path) -> None:
    data = next(path.glob("*.distcp"))
    data.write_bytes(data.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = next(path.glob("*.distcp"))
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)


def lose(path: Path) -> None:
    (path / ".metadata").unlink()


def garble(path: Path) -> None:
    """As long as before, and found by reading it only."""
    metadata = path / ".metadata"
    metadata.write_bytes(b"\0" * metadata.stat().st_size)


def cut_marker(path: Path) -> None:
    marker = path / markers.NAME
    marker.write_bytes(marker.read_bytes()[:-5])


def other_marker(path: Path) -> None:
    marker = path / markers.NAME
    marker.write_text(json.dumps({**json.loads(marker.read_bytes()), "version": 99}))


def escaping_marker(path: Path) -> None:
    marker = path / markers.NAME
    marker.write_text(json.dumps({**json.loads(marker.read_bytes()), "files": {"../../x": [0, 0]}}))


DAMAGE = [truncate, flip, lose, garble, cut_marker, other_marker, escaping_marker]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    *_, newest = saved(tmp_path, 2)
    damage(newest)
    state: dict[str, Any] = {"a": torch.zeros(100, dtype=torch.int64), "b": 0}
    found = Checkpointer(tmp_path).load(state)
    assert found is not None
    assert found.step == state["b"] == 1
    assert torch.equal(state["a"], torch.full((100,), 1))
    assert newest.name in found.passed_over[0]


def test_a_checkpoint_without_its_marker_was_never_finished(tmp_path: Path) -> None:
    *_, newest = saved(tmp_path, 2)
    (newest / markers.NAME).unlink()
    found = Checkpointer(tmp_path).load({"a": torch.zeros(100, dtype=torch.int64), "b": 0})
    assert found is not None
    assert (found.step, found.passed_over) == (1, ())


@pytest.mark.parametrize("damage", [flip, truncate, cut_marker])
def test_if_all_are_damaged_nothing_is_begun_anew_unseen(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    for path in saved(tmp_path, 2):
        damage(path)
    with pytest.raises(CheckpointError, match="none of the 2 checkpoints .* is whole; start anew in another folder"):
        Checkpointer(tmp_path).load({"a": torch.zeros(100, dtype=torch.int64), "b": 0})


def test_the_only_good_one_stays_until_a_newer_one_is_whole(tmp_path: Path) -> None:
    good, bad = saved(tmp_path, 2, keep=2)
    truncate(bad)

    def at(stage: str) -> None:
        if stage in ("writing", "marker"):
            assert Shelf(tmp_path, 1).newest() is not None
            assert good.exists()

    assert Checkpointer(tmp_path, mode="blocking", keep=1, at=at).save({"a": 3}, step=3, position=3).ok()
    assert steps_there(tmp_path) == [3]


def test_a_damaged_one_does_not_count_as_kept(tmp_path: Path) -> None:
    first, second, third = saved(tmp_path, 3, keep=3)
    truncate(third)
    assert Checkpointer(tmp_path, mode="blocking", keep=2).save({"a": 4}, step=4, position=4).ok()
    assert steps_there(tmp_path) == [2, 4]
    assert not first.exists()
    assert second.exists()


def test_one_that_is_pinned_stays_until_it_is_let_go(tmp_path: Path) -> None:
    (first,) = saved(tmp_path, 1)
    pin(first, "reader")
    checkpointer = Checkpointer(tmp_path, mode="blocking", keep=1)
    checkpointer.save({"a": 2}, step=2, position=2)
    assert steps_there(tmp_path) == [1, 2]
    unpin(first, "reader")
    unpin(first, "reader")
    checkpointer.save({"a": 3}, step=3, position=3)
    assert steps_there(tmp_path) == [3]


def test_leftovers_go_with_the_next_save_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    (first,) = saved(tmp_path, 1)
    left = tmp_path / "000002-step-7-00000000"
    shutil.copytree(first, left)
    (left / markers.NAME).rename(left / f"{markers.NAME}.tmp")
    (tmp_path / "notes").mkdir()
    (tmp_path / "interval.json").write_text("{}")
    assert Checkpointer(tmp_path).newest() is not None
    assert left.exists(), "looking removes nothing"
    assert Checkpointer(tmp_path, mode="blocking").save({"a": 2}, step=8, position=8).ok()
    assert not left.exists()
    assert (tmp_path / "notes").exists()
    assert (tmp_path / "interval.json").exists()


@given(
    st.lists(st.sampled_from(["good", "damaged", "unfinished", "pinned"]), max_size=7),
    st.integers(min_value=1, max_value=3),
)
def test_retention_keeps_the_newest_good_ones_and_never_loses_the_last(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], keep: int
) -> None:
    folder = tmp_path_factory.mktemp("shelf")
    shelf = Shelf(folder, keep)
    made = {}
    for number, kind in enumerate(kinds, 1):
        path = folder / f"{number:06d}-step-{number}-00000000"
        path.mkdir()
        (path / "data").write_bytes(b"x" * number)
        if kind != "unfinished":
            marker = Marker(number, number, number, 1, "", 0.0, {"data": (number + (kind == "damaged"), 0)})
            markers.write(path, marker, lambda: None)
        if kind == "pinned":
            pin(path, "p")
        made[path] = kind
    before = shelf.newest()
    shelf.retain(lambda stage: None)
    assert shelf.newest() == before
    whole = [path for path, kind in reversed(made.items()) if kind in ("good", "pinned")]
    kept = [path for path in whole if path.exists()]
    assert kept[:keep] == whole[:keep]
    assert all(made[path] == "pinned" for path in kept[keep:])


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file may be longer: what is written beyond fails as on a full disk."""
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("mode", ["async", "blocking"])
def test_a_disk_that_is_full_costs_one_checkpoint_and_no_more(
    tmp_path: Path, mode: Any, caplog: pytest.LogCaptureFixture
) -> None:
    saved(tmp_path, 1)
    state = {"a": torch.zeros(1_000_000), "b": 1}
    with Checkpointer(tmp_path, mode=mode) as checkpointer:
        with small_disk(1 << 20):
            saving = checkpointer.save(state, step=2, position=2)
            error = saving.error()
        assert error is not None
        assert error.startswith("the checkpoint of step 2 was not saved: rank 0: OSError: ")
        assert steps_there(tmp_path) == [1], "what was written in vain takes no space"
        assert "training goes on, the older checkpoints are there" in caplog.text
        assert checkpointer.save(state, step=3, position=3).ok()
    assert steps_there(tmp_path) == [1, 3]


@pytest.mark.parametrize("stage", ["writing", "metadata", "metadata_rename", "marker", "marker_rename"])
def test_whatever_fails_before_it_is_durable_leaves_the_older_ones(tmp_path: Path, stage: str) -> None:
    saved(tmp_path, 1)

    def at(now: str) -> None:
        if now == stage:
            raise OSError(errno.ENOSPC, "No space left on device")

    with Checkpointer(tmp_path, at=at) as checkpointer:
        saving = checkpointer.save({"a": torch.zeros(10)}, step=2, position=2)
        assert "No space left on device" in (saving.error() or "")
    assert steps_there(tmp_path) == [1]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING), Checkpointer(tmp_path / "file" / "checkpoints") as checkpointer:
        assert "NotADirectoryError" in (checkpointer.save({"a": 1}, step=1, position=1).error() or "")
    assert "step 1 was not saved" in caplog.text


def test_retention_that_fails_leaves_the_new_one_durable(tmp_path: Path) -> None:
    saved(tmp_path, 1)

    def at(now: str) -> None:
        if now == "retention":
            raise OSError(errno.EIO, "Input/output error")

    with Checkpointer(tmp_path, keep=1, at=at) as checkpointer:
        assert checkpointer.save({"a": 2}, step=2, position=2).ok()
    found = Checkpointer(tmp_path).newest()
    assert found is not None
    assert found.step == 2
