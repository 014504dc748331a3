"""The ownership file while something runs: changes are seen, faults leave what was known."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ettwatch_app.owners import OwnersWatch

SECOND = 1_000_000


def team(watch: OwnersWatch) -> str | None:
    owner = watch.owners.of("shutdown") if watch.owners else None
    return owner.team if owner else None


def write(path: Path, name: str) -> None:
    path.write_text(f"owners: {{shutdown: {{team: {name}}}}}")


@pytest.fixture
def times() -> Iterator[int]:
    return iter(range(0, 1_000 * SECOND, 10 * SECOND))


def test_a_change_is_seen_without_a_restart_and_told_once(tmp_path: Path, times: Iterator[int]) -> None:
    file = tmp_path / "owners.yaml"
    write(file, "one")
    watch = OwnersWatch(file, {})
    change = watch.look(next(times))
    assert change is not None
    assert (change.owners, change.problem) == (watch.owners, None)
    assert team(watch) == "one"
    assert watch.look(next(times)) is None
    before = file.stat()
    write(file, "two")  # as long as before, and of the same time: only what is read tells
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watch.look(next(times)) is not None
    assert team(watch) == "two"
    file.write_text(file.read_text() + "\n# the same rules")
    assert watch.look(next(times)) is None


def test_it_is_read_every_ten_seconds_only_also_where_a_clock_is_set_back(tmp_path: Path) -> None:
    file = tmp_path / "owners.yaml"
    write(file, "one")
    watch = OwnersWatch(file, {})
    watch.look(100 * SECOND)
    write(file, "two")
    assert watch.look(109 * SECOND) is None
    assert team(watch) == "one"
    assert watch.look(50 * SECOND) is not None
    assert team(watch) == "two"


def test_a_broken_file_keeps_what_was_known_and_says_so_once(tmp_path: Path, times: Iterator[int]) -> None:
    file = tmp_path / "owners.yaml"
    write(file, "one")
    watch = OwnersWatch(file, {})
    watch.look(next(times))
    file.write_text("owners:\n  shutdwn: {team: two}\n")
    change = watch.look(next(times))
    assert change is not None
    assert change.owners is None
    assert change.problem is not None
    assert change.problem.startswith(f"{file}:2: 'shutdwn' is under no component")
    assert watch.look(next(times)) is None
    assert team(watch) == "one"
    file.write_bytes(b"owners:\n  \xff: {}\n")
    change = watch.look(next(times))
    assert change is not None
    assert change.problem is not None
    assert "not UTF-8" in change.problem
    file.write_bytes(b"#" * 2_000_000)
    change = watch.look(next(times))
    assert change is not None
    assert change.problem is not None
    assert "2,000,000 bytes" in change.problem
    assert watch.look(next(times)) is None
    write(file, "one")
    assert watch.look(next(times)) is None  # it is as it was
    write(file, "two")
    assert watch.look(next(times)) is not None
    assert team(watch) == "two"


def test_a_file_that_comes_and_goes(tmp_path: Path, times: Iterator[int]) -> None:
    file = tmp_path / "owners.yaml"
    watch = OwnersWatch(file, {})
    watch.look(next(times))
    assert team(watch) == "trainer"  # the built-in one
    write(file, "mine")
    watch.look(next(times))
    assert team(watch) == "mine"
    file.unlink()
    watch.look(next(times))
    assert team(watch) == "trainer"


def test_a_named_file_that_vanishes_is_told_and_kept(tmp_path: Path, times: Iterator[int]) -> None:
    named = tmp_path / "named.yaml"
    env = {"ETTWATCH_OWNERS": str(named)}
    watch = OwnersWatch(tmp_path / "none", env)
    change = watch.look(next(times))
    assert change is not None
    assert change.problem is not None
    assert "cannot read the ownership file" in change.problem
    assert watch.owners is None
    write(named, "one")
    watch.look(next(times))
    named.unlink()
    assert watch.look(next(times)) is not None
    assert watch.look(next(times)) is None
    assert team(watch) == "one"


def test_a_link_that_is_pointed_elsewhere_is_followed(tmp_path: Path, times: Iterator[int]) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, name)
    link = tmp_path / "owners.yaml"
    link.symlink_to("one")
    watch = OwnersWatch(link, {})
    watch.look(next(times))
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").replace(link)
    watch.look(next(times))
    assert team(watch) == "two"
