"""The book of attempts never forgets a number: on a full disk, on a read-only one, in the middle of a write."""

import multiprocessing
import os
import resource
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from ettwatch import book

SPAWN = multiprocessing.get_context("fork")


def _page(spool: Path) -> Path:
    (page,) = (spool / ".attempts").iterdir()
    return page


def _claim_on_a_full_disk(spool: str, limit: int, told: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        told.put(book.claim(spool, "job", 0).attempt)
    except OSError as error:
        told.put(error.errno)


@pytest.mark.parametrize("limit", [0, 20, 60])
def test_a_full_disk_takes_no_number_back(tmp_path: Path, limit: int) -> None:
    for _ in range(3):
        book.claim(str(tmp_path), "job", 0)
    told = SPAWN.Queue()
    process = SPAWN.Process(target=_claim_on_a_full_disk, args=(str(tmp_path), limit, told))
    process.start()
    assert told.get(timeout=30) == 3
    process.join(30)
    assert book.claim(str(tmp_path), "job", 0) == book.Claim(3, True, None)


def test_a_book_that_can_only_be_read_still_gives_the_next_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.claim(str(tmp_path), "job", 4)
    real = os.open

    def read_only(path: Any, flags: int, *args: Any, **more: Any) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *args, **more)

    monkeypatch.setattr(os, "open", read_only)
    assert book.claim(str(tmp_path), "job", 0).attempt == 5
    assert book.enlist(str(tmp_path), "job", 0, "launch") == 5


def test_a_book_that_can_be_neither_read_nor_written_is_an_error(tmp_path: Path) -> None:
    spool = tmp_path / "file"
    spool.write_text("")
    with pytest.raises(OSError):
        book.claim(str(spool), "job", 0)


def _claim_until_killed(spool: str) -> None:
    while True:
        book.claim(spool, "job", 0)


def test_killed_at_any_moment_it_goes_on_where_it_was(tmp_path: Path) -> None:
    last = book.claim(str(tmp_path), "job", 100).attempt
    for _ in range(20):
        process = SPAWN.Process(target=_claim_until_killed, args=(str(tmp_path),))
        process.start()
        while book.claim(str(tmp_path), "job", 0).attempt < last + 20:
            pass
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(30)
        now = book.claim(str(tmp_path), "job", 0).attempt
        assert now > last
        last = now


def test_a_page_is_overwritten_in_its_place_and_may_shrink(tmp_path: Path) -> None:
    job = "x" * 1024
    book.claim(str(tmp_path), job, 0)
    book.enlist(str(tmp_path), job, 0, "launch " * 200)
    inode = _page(tmp_path).stat()[stat.ST_INO]
    assert book.claim(str(tmp_path), job, 0).attempt == 2
    assert book.enlist(str(tmp_path), job, 0, "l") == 3
    assert book.enlist(str(tmp_path), job, 0, "l") == 3
    assert _page(tmp_path).stat()[stat.ST_INO] == inode
