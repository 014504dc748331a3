"""Parts of the data folder that were deleted, and who may read the rest."""

import shutil
import stat
from pathlib import Path

from up.bench import Bench
from up.world import beat, beats

STATE = ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm")


def test_a_deleted_clickhouse_is_told_and_filled_again(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        bench.put("a.jsonl", beats(1, 2, 3))
        bench.go()
        assert len(bench.store.events) == 3
    shutil.rmtree(bench.folder.clickhouse)
    with Bench(tmp_path) as bench:
        (told,) = bench.told("store_lost")
        assert "1 job" in told["message"]
        bench.put("b.jsonl", beats(3, 4))
        bench.go()
        assert {event_id for _, event_id in bench.store.events} == {"job-1", "job-2", "job-3", "job-4"}
        assert bench.store.jobs["job"].version >> 32 == 4
    with Bench(tmp_path, store=bench.store) as bench:
        assert bench.told("store_lost") == []


def test_another_clickhouse_that_holds_jobs_is_taken_as_it_is(tmp_path: Path) -> None:
    with Bench(tmp_path / "one") as one:
        one.put("a.jsonl", beats(1, 2))
        one.go()
    with Bench(tmp_path / "other") as other:
        other.put("a.jsonl", beat(7, "there"))
        other.go()
    shutil.rmtree(one.folder.clickhouse)
    shutil.copytree(other.folder.clickhouse, one.folder.clickhouse)
    with Bench(tmp_path / "one", store=other.store) as bench:
        assert len(bench.told("store_lost")) == 1
        bench.put("b.jsonl", beats(7, 8, job="there"))
        bench.go()
        assert bench.runner.totals.duplicates == 1
        assert set(bench.store.events) == {
            ("job", "job-1"),
            ("job", "job-2"),
            ("there", "there-7"),
            ("there", "there-8"),
        }


def test_a_lost_state_file_leaves_the_dead_letters(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        bench.put("a.jsonl", b"nonsense\n")
        bench.go()
        store, before = bench.store, bench.folder.rejected.read_bytes()
    (bench.folder.spool / "a.jsonl").unlink()
    for name in STATE:
        (bench.folder.root / name).unlink(missing_ok=True)
    with Bench(tmp_path, store=store) as bench:
        assert bench.folder.rejected.read_bytes() == before
        bench.folder.rejected.write_bytes(before + b"not committed\n")
    with Bench(tmp_path, store=store) as bench:
        assert bench.folder.rejected.read_bytes() == before


def test_what_quotes_input_is_for_its_owner_only(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        bench.put("a.jsonl", b"nonsense\n")
        bench.go()
        for path in (bench.folder.rejected, *(bench.folder.root / name for name in STATE)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
