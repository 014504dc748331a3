"""What tools, shells and collectors do to a log changes nothing of what it says: marks, line ends, order, copies."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ettwatch_app.commands.import_ import import_
from ettwatch_schemas import decode_event
from ettwatch_sources.lines import as_utf8, lines
from ettwatch_sources.ordering import in_time
from support.imported import Imported
from support.whole_logs import IN_LINES, WHOLE, T, sacct, scontrol

SHAPES: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "byte order mark and CRLF": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "CR": lambda data: data.replace(b"\n", b"\r"),
    "UTF-16, little": lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le"),
    "UTF-16, big, CRLF": lambda data: b"\xfe\xff" + data.decode().replace("\n", "\r\n").encode("utf-16-be"),
    "no line break at its end": lambda data: data.rstrip(b"\n"),
    "empty lines before it": lambda data: b"\n \n\r\n" + data,
    "zeros of a crash": lambda data: data + b"\0" * 700,
    "spaces at its end": lambda data: data + b"  \n \n",
}


def said(found: Imported) -> list[dict[str, Any]]:
    """All but the places and the labels, which hold flags."""
    values = [json.loads(event.model_dump_json(exclude={"id", "labels"})) for event in found.events]
    return sorted(values, key=json.dumps)


def figures(found: Imported) -> dict[str, tuple[Any, ...]]:
    jobs = found.jobs.items()
    return {job: (round(s.ett_pct or 0, 6), s.status, s.attempts, s.nof, s.e2e_s, s.tts_s, s.ttr_s) for job, s in jobs}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", WHOLE)
def test_a_log_of_another_shape_says_the_same(name: str, shape: str) -> None:
    plain = Imported("auto", WHOLE[name])
    assert plain.report.kind == name.split(",", maxsplit=1)[0]
    assert not plain.report.refused
    odd = Imported("auto", SHAPES[shape](WHOLE[name].encode()))
    assert said(odd) == said(plain)
    assert not odd.report.refused


@pytest.mark.parametrize("name", IN_LINES)
def test_lines_in_any_order_say_the_same_and_are_flagged(name: str) -> None:
    plain = Imported("auto", IN_LINES[name])
    assert "out_of_order" not in plain.flags
    pieces = IN_LINES[name].splitlines(keepends=True)
    chance = random.Random(name)
    for _ in range(20):
        mixed = pieces[:]
        chance.shuffle(mixed)
        odd = Imported(name, "".join(mixed))
        assert figures(odd) == figures(plain)
        assert ("out_of_order" in odd.flags) == (mixed != pieces)
    newest_first = Imported(name, "".join(reversed(pieces)))
    assert figures(newest_first) == figures(plain)
    # The place of each event is that of its line as it stands in the file.
    for told in newest_first.told:
        where = int(told.place.rpartition(":")[2])
        assert 1 <= where <= len(pieces)


@pytest.mark.parametrize("name", [name for name in WHOLE if "JSON" not in name and name not in {"philly", "megatron"}])
def test_a_log_that_was_collected_twice_says_the_same(name: str) -> None:
    """As a file put behind itself, its header included."""
    plain = Imported("auto", WHOLE[name])
    twice = Imported("auto", WHOLE[name] * 2)
    assert figures(twice) == figures(plain)
    assert not twice.report.refused


def test_cloud_loggings_newest_first_in_an_array() -> None:
    entries = [json.loads(line) for line in WHOLE["mlgoodput"].splitlines()]
    wrapped = [{"jsonPayload": entry, "timestamp": "2025-11-03T10:00:00Z"} for entry in reversed(entries)]
    found = Imported("auto", json.dumps(wrapped, indent=2))
    assert figures(found) == figures(Imported("auto", WHOLE["mlgoodput"]))
    assert "out_of_order" in found.flags


def test_progress_bars_between_lines() -> None:
    first, *rest = WHOLE["torchtitan"].splitlines(keepends=True)
    found = Imported("auto", first + "".join(f"  10%|#   | 1/9\r  20%|##  | 2/9\r{line}" for line in rest))
    assert figures(found) == figures(Imported("auto", WHOLE["torchtitan"]))
    # Lines are counted by line feeds, as editors do.
    assert [line.number for line in lines([b"a\rb\nc\r\nd\r"])] == [1, 1, 2, 3]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_packed_and_cut_off(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Where the end of a packed file is missing, what stands before it counts and the damage is told."""
    data = SHAPES["UTF-16, little"](WHOLE["mllog"].encode())
    whole, cut = tmp_path / "whole.log", tmp_path / "cut.log"
    whole.write_bytes(pack(data))
    cut.write_bytes(pack(data)[:-9])
    done = CliRunner().invoke(import_, ["auto", str(whole), "--out", "-"])
    assert (done.exit_code, len({decode_event(line).job for line in done.stdout_bytes.splitlines()})) == (0, 1)
    damaged = CliRunner().invoke(import_, ["mllog", str(cut), "--out", "-"])
    assert damaged.exit_code in {1, 2}
    assert str(cut) in damaged.stderr


def test_runs_of_one_id_that_stand_apart() -> None:
    """As where outputs of sacct are joined, or sorted by something else."""

    def row(job: int, state: str, submit: int, start: int | None, end: int | None) -> str:
        times = [str(T + at) if at is not None else "Unknown" for at in (submit, submit, start, end)]
        return "|".join([str(job), state, *times])

    header = "JobID|State|Submit|Eligible|Start|End"
    rows = [row(7, "PREEMPTED", 0, 60, 3600), row(7, "COMPLETED", 3600, 3900, 8000), row(8, "NODE_FAIL", 0, 60, 3600)]
    rows += [row(8, "FAILED", 3600, 3900, 8000), row(9, "RUNNING", 0, 10, None)]
    plain = figures(Imported("slurm", "\n".join([header, *rows]) + "\n"))
    assert plain["7"][1:4] == ("succeeded", 2, 1)
    chance = random.Random(7)
    for _ in range(30):
        chance.shuffle(rows)
        assert figures(Imported("slurm", "\n".join([header, *rows]) + "\n")) == plain


def test_outputs_of_several_times_in_one_file_tell_the_newest() -> None:
    header = "JobID|State|Submit|Start|End"
    rows = [f"7|PENDING|{T}|Unknown|Unknown", f"7|RUNNING|{T}|{T + 60}|Unknown", f"7|COMPLETED|{T}|{T + 60}|{T + 90}"]
    for order in (rows, rows[::-1]):
        found = Imported("slurm", "\n".join([header, *order]) + "\n")
        assert (found.job.attempts, found.job.status, found.job.e2e_s) == (1, "succeeded", 90.0)


def test_scontrol_in_several_lines_keeps_the_place_and_refuses_what_is_cut() -> None:
    text = scontrol("\n   ", "\n\n")
    found = Imported("slurm", text)
    assert {told.place for told in found.told} == {f"run.log:{line}" for line in (1, 8, 15)}
    cut = Imported("slurm", text[: text.rindex("JobState") + 3])
    assert (len(cut.jobs), cut.report.refused, "truncated" in cut.flags) == (2, 1, True)


def test_a_table_for_people_says_how_to_export() -> None:
    table = "JobID           JobName      State\n------------ ---------- ----------\n7                  a    RUNNING\n"
    found = Imported("auto", table)
    assert not found.events
    assert "--parsable2" in found.report.doubts.refused[0].reason


def test_two_clusters_with_one_id() -> None:
    rows = [f"7|COMPLETED|{name}|{T}|{T + 60}|{T + 90}" for name in ("c1", "c2")]
    found = Imported("slurm", "\n".join(["JobID|State|Cluster|Submit|Start|End", *rows]) + "\n")
    assert set(found.jobs) == {"c1-7", "c2-7"}
    assert sacct().count("\n") == 4


@given(st.lists(st.tuples(st.none() | st.integers(0, 9), st.integers(0, 99)), max_size=60), st.integers(1, 70))
def test_in_time_gives_each_once_behind_what_it_follows(pieces: list[tuple[int | None, int]], window: int) -> None:
    moved: list[int] = []
    texts = [(time, f"{number}") for number, (time, _) in enumerate(pieces)]
    found = list(in_time(texts, lambda p: p[0], lambda p: p[1], lambda: moved.append(1), window))
    assert sorted(found, key=lambda p: int(p[1])) == texts
    times = [time for time, _ in texts if time is not None]
    assert bool(moved) == (times != sorted(times))
    if window >= len(pieces):
        assert [time for time, _ in found if time is not None] == sorted(times)
    if times == sorted(times):
        assert found == texts


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=30))
def test_what_is_said_twice_at_one_time_is_given_once(pieces: list[tuple[int, str]]) -> None:
    found = list(in_time(pieces, lambda p: p[0], lambda p: p[1], lambda: None))
    assert sorted(found) == sorted(set(pieces))


@settings(max_examples=60)
@given(st.text(), st.lists(st.integers(1, 9), max_size=20), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_utf16_in_chunks_of_any_size(text: str, sizes: list[int], code: str) -> None:
    data = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[code] + text.encode(code)
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    assert b"".join(as_utf8([*chunks, data[at:]])).decode() == text
