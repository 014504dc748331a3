import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ettwatch_clickhouse import DataFolderInUse, DataFolderNotWritable, StoreError, migrate, open_embedded
from ettwatch_clickhouse.embedded import _open_error
from support.clickhouse import count, front_process

OPENS = """
import sys
from pathlib import Path
from ettwatch_clickhouse import StoreError, open_embedded
try:
    open_embedded(Path(sys.argv[1])).close()
except StoreError as e:
    sys.exit(f"{type(e).__name__}: {e}")
"""


def opened_elsewhere(folder: Path) -> str:
    """What another process says when it opens a folder."""
    done = subprocess.run([sys.executable, "-c", OPENS, str(folder)], capture_output=True, text=True, timeout=60)
    return done.stderr.strip()


def test_a_folder_is_made_where_it_is_missing_and_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    store = open_embedded(folder)
    migrate(store)
    store.insert("jobs_log", ["job"], [("j",)])
    store.close()
    store.close()
    store = open_embedded(folder)
    assert store.query("SELECT job FROM ettwatch.jobs").rows == [("j",)]
    store.close()


def test_it_speaks_of_times_in_utc_wherever_the_machine_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Denver")
    store = open_embedded(tmp_path)
    assert store.query("SELECT toString(toDateTime(0)), timezone()").rows[0][0] == "1970-01-01 00:00:00"
    store.close()


def test_a_folder_of_another_process_is_in_use(tmp_path: Path) -> None:
    with front_process(tmp_path / "ch"), pytest.raises(DataFolderInUse) as caught:
        open_embedded(tmp_path / "ch")
    assert f"{tmp_path}/ch is in use by process " in str(caught.value)
    assert "talk to its HTTP address" in str(caught.value)
    open_embedded(tmp_path / "ch").close()


def test_it_says_so_to_others_too(tmp_path: Path) -> None:
    store = open_embedded(tmp_path)
    said = opened_elsewhere(tmp_path)
    assert said.startswith("DataFolderInUse: the data folder ")
    assert f"process {os.getpid()}" in said
    assert "\n" not in said
    store.close()
    assert opened_elsewhere(tmp_path) == ""


def test_the_same_folder_twice_in_one_process_is_fine(tmp_path: Path) -> None:
    first, second = open_embedded(tmp_path), open_embedded(tmp_path / "." / "")
    first.command("CREATE TABLE t (a Int8) ENGINE = Memory")
    first.insert("t", ["a"], [(1,)])
    assert count(second, "t") == 1
    first.close()
    assert count(second, "t") == 1
    second.close()


def test_a_second_folder_in_one_process_is_refused(tmp_path: Path) -> None:
    store = open_embedded(tmp_path / "one")
    with pytest.raises(StoreError, match=r"cannot open the data folder .*/two: this process has .*/one open"):
        open_embedded(tmp_path / "two")
    store.close()
    open_embedded(tmp_path / "two").close()


def test_a_path_that_cannot_be_a_folder_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataFolderNotWritable, match="cannot write to the data folder .*; give the user the right"):
            open_embedded(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="needs a user other than root")
def test_a_folder_without_rights_is_not_writable(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(DataFolderNotWritable, match="Permission denied"):
        open_embedded(tmp_path)
    tmp_path.chmod(0o755)


def test_the_engines_silence_means_that_someone_was_faster(tmp_path: Path) -> None:
    message = (
        "Failed to create connection: Code: 36. DB::Exception: Error initializing EmbeddedServer: . (BAD_ARGUMENTS)"
    )
    assert isinstance(_open_error(tmp_path, message), DataFolderInUse)
    message = "Failed to create connection: Code: 36. DB::Exception: Cannot parse metadata. (BAD_ARGUMENTS)"
    error = _open_error(tmp_path, message)
    assert type(error) is StoreError
    assert "Cannot parse metadata" in str(error)


def test_threads_may_ask_while_one_writes(tmp_path: Path) -> None:
    store = open_embedded(tmp_path)
    store.command("CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a")
    errors: list[BaseException] = []
    stop = threading.Event()

    def ask() -> None:
        try:
            while not stop.is_set():
                number, largest = store.query("SELECT count(), max(a) FROM t").rows[0]
                assert isinstance(number, int)
                assert number % 100 == 0
                assert largest == max(number - 1, 0)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for batch in range(20):
        store.insert("t", ["a"], [(batch * 100 + n,) for n in range(100)])
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors
    store.close()
