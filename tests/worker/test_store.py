"""The local copy of the state, damaged while nobody works on it: it is read anew, and never half."""

import gc
import glob
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faust.types import TP

from ettwatch_core import StateError
from ettwatch_faust.app import make_app
from ettwatch_faust.settings import WorkerSettings
from ettwatch_faust.store import RocksStore

PLACE = TP("ett-worker-state-changelog", 3)
JOBS = 2_000
HALF = 1_000


def opened(folder: Path, prefix: str = "ett") -> RocksStore:
    settings = {"ETTWATCH_KAFKA": "nowhere.invalid:1", "ETTWATCH_STORE": "rocksdb", "ETTWATCH_TOPIC_PREFIX": prefix}
    app = make_app(WorkerSettings.read(settings, {"state_dir": str(folder)}))
    app.finalize()
    table: Any = app.tables["state"]
    store: RocksStore = table.data
    return store


def closed(store: RocksStore) -> None:
    store._dbs.clear()
    gc.collect()


def write(store: RocksStore, first: int, last: int) -> None:
    """Write jobs, ten at a time, with the offset of the last one."""
    for at in range(first, last, 10):
        store.write(3, [(b"job-%06d" % n, os.urandom(400)) for n in range(at, at + 10)], at + 9)


def jobs(store: RocksStore) -> int:
    return sum(key.startswith(b"job-") for key, _ in store.part(3).items())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition of which one half lies in a table file, and the other in the log."""
    store = opened(tmp_path)
    write(store, 0, HALF)
    store._dbs[3].flush()
    write(store, HALF, JOBS)
    shutil.copytree(tmp_path / "v1", tmp_path / "killed" / "v1")  # as kill -9 leaves it
    closed(store)
    return tmp_path / "killed"


def files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(Path(each) for each in glob.glob(f"{folder}/**/{pattern}", recursive=True))
    assert found
    return found


def flip(pattern: str, share: float) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        for path in files(folder, pattern):
            data = bytearray(path.read_bytes())
            at = int(len(data) * share)
            data[at : at + 8] = bytes(byte ^ 0xFF for byte in data[at : at + 8])
            path.write_bytes(data)

    return harm


def cut(pattern: str, share: float) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        for path in files(folder, pattern):
            os.truncate(path, int(path.stat().st_size * share))

    return harm


def remove(pattern: str) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        for path in files(folder, pattern):
            path.unlink()

    return harm


def overwrite(pattern: str, data: bytes) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        for path in files(folder, pattern):
            path.write_bytes(data)

    return harm


WHOLE: dict[str, Callable[[Path], None]] = {
    "nothing": lambda folder: None,
    "options removed": remove("OPTIONS*"),
    "options of another version": overwrite("OPTIONS*", b"[Version]\n  rocksdb_version=99.0.0\n"),
}
OLDER: dict[str, Callable[[Path], None]] = {
    "log removed": remove("*.log"),
    "log cut": cut("*.log", 0.5),
    "log flipped": flip("*.log", 0.5),
}
DAMAGED: dict[str, Callable[[Path], None]] = {
    "table removed": remove("*.sst"),
    "table cut": cut("*.sst", 0.5),
    "table flipped early": flip("*.sst", 0.001),
    "table flipped": flip("*.sst", 0.5),
    "table flipped late": flip("*.sst", 0.99),
    "list of files flipped": flip("MANIFEST*", 0.5),
    "list of files cut": cut("MANIFEST*", 0.5),
    "list of files removed": remove("MANIFEST*"),
    "pointer removed": remove("CURRENT"),
    "pointer garbled": overwrite("CURRENT", b"MANIFEST-9"),
}


@pytest.mark.parametrize("harm", WHOLE.values(), ids=WHOLE)
def test_what_is_whole_is_used(folder: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture) -> None:
    harm(folder)
    store = opened(folder)
    assert (jobs(store), store.persisted_offset(PLACE)) == (JOBS, JOBS - 1)
    assert not caplog.records
    closed(store)


@pytest.mark.parametrize("harm", OLDER.values(), ids=OLDER)
def test_what_is_older_knows_up_to_where_it_goes(folder: Path, harm: Callable[[Path], None]) -> None:
    harm(folder)
    store = opened(folder)
    offset = store.persisted_offset(PLACE)
    assert offset is not None
    assert HALF - 1 <= offset < JOBS - 1
    assert jobs(store) == offset + 1
    closed(store)


@pytest.mark.parametrize("harm", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_read_anew(
    folder: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    harm(folder)
    store = opened(folder)
    assert (store.persisted_offset(PLACE), jobs(store)) == (None, 0)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "ettwatch_faust.store"]
    assert line.startswith("the copy of partition 3 in ")
    assert line.endswith("; it is removed, and read from the changelog anew")
    write(store, 0, JOBS)
    closed(store)
    store = opened(folder)
    assert (jobs(store), store.persisted_offset(PLACE)) == (JOBS, JOBS - 1)
    assert len(caplog.records) == 1
    closed(store)


def test_the_state_of_other_workers_is_not_used(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = opened(folder, prefix="other")
    assert (store.persisted_offset(PLACE), jobs(store)) == (None, 0)
    assert "it holds the state of ett-worker, not of other-worker" in caplog.text
    closed(store)


def test_a_copy_that_was_written_before_there_were_marks_is_used(tmp_path: Path) -> None:
    store = opened(tmp_path)
    write(store, 0, HALF)
    for key in [key for key, _ in store.part(3).items() if key.startswith(b"__ettwatch")]:
        store._dbs[3].delete(key)
    closed(store)
    store = opened(tmp_path)
    assert (jobs(store), store.persisted_offset(PLACE)) == (HALF, HALF - 1)
    closed(store)


def test_marks_do_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ettwatch_faust.store._MARKS", 5)
    monkeypatch.setattr("ettwatch_faust.store._MARK_EVERY", 4_000)
    for _ in range(2):
        store = opened(tmp_path)
        write(store, 0, HALF)
        assert sum(key.startswith(b"__ettwatch_mark") for key, _ in store.part(3).items()) == 5
        closed(store)
    assert jobs(opened(tmp_path)) == HALF


def test_a_place_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    store = opened(tmp_path)
    path = store.partition_path(3)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("no folder")
    with pytest.raises(StateError, match=r"cannot use the local copy of the state, .*state-3\.db: .*--state-dir"):
        store.part(3)
    assert path.read_text() == "no folder"


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    class Full:
        def write(self, batch: Any) -> None:
            raise Exception("IO error: No space left on device: While appending to file: 000012.log")

    store = opened(tmp_path)
    write(store, 0, 10)
    closed(store)
    store._dbs[3] = Full()
    with pytest.raises(StateError, match=r"state-3\.db: IO error: No space left on device: .*; make room"):
        write(store, 10, 20)


def test_a_partition_that_another_process_has_is_waited_for(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    write(first, 0, 10)
    with pytest.raises(Exception, match="lock") as raised:
        second.part(3)
    assert not isinstance(raised.value, StateError)
    assert jobs(first) == 10
    closed(first)
    assert jobs(second) == 10
    closed(second)
