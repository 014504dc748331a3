"""Bad input: told with file, line and reason, skipped, and counted in the exit code."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner, Result

from ettwatch_app.commands.replay import replay

GOOD = '{"v":1,"id":"1","kind":"job_submitted","job":"a","ts":1790000000000000}'


def run(*args: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(replay, [str(arg) for arg in args], input=stdin)


def filed(tmp_path: Path, data: bytes | str, name: str = "in.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


BAD_LINES = {
    "garbage": ("what", "JSON"),
    "nan": ('{"v":1,"id":"2","kind":"training_started","job":"a","ts":1790000000000000,"attempt":0,'
            '"position":0,"report_every_s":NaN}', "report_every_s"),
    "unknown kind": ('{"v":1,"id":"2","kind":"lunch","job":"a","ts":1790000000000000}', "kind"),
    "unknown component": ('{"v":1,"id":"2","kind":"phase_started","job":"a","ts":1790000000000000,"attempt":0,'
                          '"span":"s","phase":"coffee.break"}', "phase"),
    "seconds": ('{"v":1,"id":"2","kind":"heartbeat","job":"a","ts":1790000000,"attempt":0}', "seconds"),
    "milliseconds": ('{"v":1,"id":"2","kind":"heartbeat","job":"a","ts":1790000000000,"attempt":0}', "milliseconds"),
    "negative position": ('{"v":1,"id":"2","kind":"progress","job":"a","ts":1790000000000000,"attempt":0,'
                          '"position":-1}', "position"),
    "attempt -1": ('{"v":1,"id":"2","kind":"heartbeat","job":"a","ts":1790000000000000,"attempt":-1}', "attempt"),
    "no job": ('{"v":1,"id":"2","kind":"heartbeat","ts":1790000000000000,"attempt":0}', "job"),
    "version 2": ('{"v":2,"id":"2","kind":"heartbeat","job":"a","ts":1790000000000000,"attempt":0}', "v"),
}  # fmt: skip


@pytest.mark.parametrize("mode", [(), ("--lateness", "6h")], ids=["buckets", "pass"])
@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_told_and_skipped(name: str, mode: tuple[str, ...], tmp_path: Path) -> None:
    line, word = BAD_LINES[name]
    path = filed(tmp_path, f"{GOOD}\n{line}\n")
    result = run(path, *mode)
    assert result.exit_code == 1
    (told,) = result.stderr.splitlines()
    assert told.startswith(f"{path}:2: ")
    assert word in told
    assert json.loads(result.stdout)["job"] == "a"


def test_invalid_utf8(tmp_path: Path) -> None:
    path = filed(tmp_path, GOOD.encode() + b"\n" + GOOD.encode().replace(b'"a"', b'"\xff"') + b"\n")
    result = run(path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}:2: ")
    assert "UTF-8" in result.stderr


def test_a_line_of_10_mb_is_skipped(tmp_path: Path) -> None:
    of_b = GOOD.replace('"a"', '"b"')
    huge = '{"v":1,"id":"' + "x" * 10_000_000 + '","kind":"heartbeat"}'
    path = filed(tmp_path, f"{GOOD}\n{huge}\n{of_b}\n")
    result = run(path)
    assert result.exit_code == 1
    (told,) = result.stderr.splitlines()
    assert told.startswith(f"{path}:2: the line is longer than 8,388,608 bytes")
    assert [json.loads(line)["job"] for line in result.stdout.splitlines()] == ["a", "b"]


def test_an_array_counts_its_good_events(tmp_path: Path) -> None:
    more = GOOD.replace('"1"', '"3"')
    bad = '{"v":1,"id":"2","kind":"lunch","job":"a","ts":1790000000000000}'
    path = filed(tmp_path, f"[{GOOD}, {bad}, {more}]\n")
    result = run(path)
    assert result.exit_code == 1
    (told,) = result.stderr.splitlines()
    assert told.startswith(f"{path}:1: [1] ")
    assert json.loads(result.stdout)["job"] == "a"


def test_one_id_with_two_contents(tmp_path: Path) -> None:
    one = '{"v":1,"id":"x","kind":"job_ended","job":"a","ts":1790000050000000,"outcome":"failed"}'
    two = one.replace("failed", "succeeded")
    texts = []
    for lines in ((GOOD, one, two), (GOOD, two, one)):
        result = run(filed(tmp_path, "\n".join(lines) + "\n"))
        assert result.exit_code == 1
        assert "id: 'x' was told before with other content" in result.stderr
        texts.append(result.stdout)
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeff{GOOD}\n",
        f"{GOOD}\r\n\r\n",
        f"\n\n   \n{GOOD}\n\n",
        GOOD,
        f"  {GOOD}  \n\t\n",
        f" [{GOOD}] \n",
    ],
    ids=["byte order mark", "CRLF", "blank lines", "no last line break", "blanks around", "array with blanks"],
)
def test_harmless_oddities(text: str, tmp_path: Path) -> None:
    for mode in ((), ("--lateness", "6h")):
        result = run(filed(tmp_path, text), *mode)
        assert (result.exit_code, result.stderr) == (0, "")


def test_a_truncated_last_line_says_so(tmp_path: Path) -> None:
    path = filed(tmp_path, f"{GOOD}\n{GOOD[:40]}")
    for mode in ((), ("--lateness", "6h")):
        result = run(path, *mode)
        assert result.exit_code == 1
        (told,) = result.stderr.splitlines()
        assert told.startswith(f"{path}:2: ")
        assert told.endswith("the file was cut off here, or is still being written")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"nothing good\n"], ids=["empty", "blank", "bad"])
def test_no_good_event_is_nothing_done(data: bytes, tmp_path: Path) -> None:
    result = run(filed(tmp_path, data))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "nothing done: there is no good event in the input" in result.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = run(tmp_path / "nope.jsonl")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{tmp_path}/nope.jsonl: there is no such file")
    result = run(tmp_path / "nope.jsonl", filed(tmp_path, GOOD))
    assert result.exit_code == 1
    assert "nope.jsonl: there is no such file" in result.stderr


def test_a_folder_is_named(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path}: this is a folder; name the files in it, such as {tmp_path}/*.jsonl" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="needs a user other than root")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = filed(tmp_path, GOOD)
    path.chmod(0)
    assert "no permission" in run(path).stderr


def test_no_file_at_all_is_a_usage_error() -> None:
    result = run()
    assert result.exit_code == 2
    assert "Missing argument" in result.stderr


def test_a_name_with_control_characters_is_shown_without_them(tmp_path: Path) -> None:
    result = run(tmp_path / "no\x1b[31mpe")
    assert "\x1b" not in result.stderr
    assert "there is no such file" in result.stderr


def test_many_bad_lines_are_counted_not_shown(tmp_path: Path) -> None:
    path = filed(tmp_path, GOOD + "\n" + "bad\n" * 250)
    result = run(path)
    told = result.stderr.splitlines()
    assert result.exit_code == 1
    assert len(told) == 101
    assert told[0].startswith(f"{path}:2: ")
    assert told[99].startswith(f"{path}:101: ")
    assert told[100].startswith(f"{path}: 150 more like these, not shown (rejected in this file: bad_json 250")


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gz", "zst"])
def test_packed_files_are_read_whatever_their_name(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    path = filed(tmp_path, pack(GOOD.encode()), "events")
    assert run(path).exit_code == 0
    assert run("-", stdin=path.read_bytes()).exit_code == 0


def many(number: int) -> bytes:
    """Lines that do not pack well."""
    text = (GOOD.replace('"a"', f'"job-{i}"').replace('"1"', f'"{os.urandom(12).hex()}"') for i in range(number))
    return "\n".join(text).encode() + b"\n"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gz", "zst"])
def test_a_cut_off_packed_file_gives_what_was_read(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    data = pack(many(20_000))
    path = filed(tmp_path, data[: len(data) // 2])
    result = run(path)
    assert result.exit_code == 1
    assert "ends too early" in result.stderr
    jobs = len(result.stdout.splitlines())
    assert 5_000 < jobs < 15_000
    assert f"up to line {jobs:,}" in result.stderr or f"up to line {jobs + 1:,}" in result.stderr


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gz", "zst"])
def test_a_damaged_packed_file_gives_what_was_read(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    data = bytearray(pack(many(20_000)))
    middle = len(data) // 2
    data[middle : middle + 400] = bytes(400)
    result = run(filed(tmp_path, bytes(data)))
    assert result.exit_code == 1
    assert "damaged" in result.stderr or "too early" in result.stderr
    assert 3_000 < len(result.stdout.splitlines()) < 15_000


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"BZh91AY&SY", "bunzip2"),
        (b"\xfd7zXZ\x00\x00", "unxz"),
        (b"PK\x03\x04\x14\x00", "unzip"),
        (b"PAR1\x15\x04", "Parquet"),
        ("\ufeff" + GOOD, "UTF-16"),
    ],
)
def test_foreign_formats_are_named(data: bytes | str, word: str, tmp_path: Path) -> None:
    raw = data.encode("utf-16") if isinstance(data, str) else data
    result = run(filed(tmp_path, raw))
    assert result.exit_code == 2
    assert word in result.stderr


def test_standard_input_and_files_together(tmp_path: Path) -> None:
    result = run("-", filed(tmp_path, GOOD.replace('"a"', '"b"')), stdin=b"bad\n" + GOOD.encode() + b"\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("<stdin>:1: ")
    assert [json.loads(line)["job"] for line in result.stdout.splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--now", "1790000000", "seconds"),
        ("--now", "1790000000000", "milliseconds"),
        ("--now", "1790000000000000000", "nanoseconds"),
        ("--now", "2026-09-21T14:13:20", "no time zone"),
        ("--now", "yesterday", "RFC 3339"),
        ("--now", "12", "no time from 2000 to 2199"),
        ("--lateness", "6 hours", "no duration"),
        ("--lateness", "-1", "no duration"),
        ("--hang-after", "99999999d", "100 years"),
    ],
)
def test_bad_options_say_what_to_write(option: str, value: str, word: str, tmp_path: Path) -> None:
    result = run(filed(tmp_path, GOOD), f"{option}={value}")
    assert result.exit_code == 2
    assert word in " ".join(result.stderr.split())


@pytest.mark.parametrize("now", ["1790000060000000", "2026-09-21T14:14:20Z", "2026-09-21T16:14:20+02:00"])
def test_now_sets_the_clock(now: str, tmp_path: Path) -> None:
    result = run(filed(tmp_path, GOOD), "--now", now)
    assert json.loads(result.stdout)["e2e_s"] == 60.0


def test_hang_after_is_a_setting(tmp_path: Path) -> None:
    lines = [
        '{"v":1,"id":"1","kind":"training_started","job":"a","ts":1790000000000000,"attempt":0,"position":0,'
        '"report_every_s":1}',
        '{"v":1,"id":"2","kind":"progress","job":"a","ts":1790000100000000,"attempt":0,"position":10}',
    ]
    path = filed(tmp_path, "\n".join(lines))
    effective = [json.loads(run(path, "--hang-after", after).stdout)["effective_s"] for after in ("1m40s", "99")]
    assert effective == [100.0, 0.0]


def test_the_table_names_every_job(tmp_path: Path) -> None:
    name = "[red]evil[/red]\\u001b[2J"
    path = filed(tmp_path, GOOD.replace('"a"', f'"{name}"'))
    result = run(path, "--format", "table", "--segments")
    assert result.exit_code == 0
    assert "[red]evil[/red]" in result.stdout.replace("\n", "")
    assert "\x1b" not in result.stdout


PROGRAM = "from ettwatch_app.commands.replay import replay; replay(prog_name='ettwatch replay')"


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    path = filed(tmp_path, many(5_000))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        process.wait(60)
    assert (process.returncode, told) == (141, b"")


def test_ctrl_c_ends_it_quietly() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + "\n", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        # More than one pipe's buffer: when the write returns, the command is reading.
        process.stdin.write(many(5_000))
        process.stdin.flush()
        process.send_signal(2)
        out, told = process.communicate(timeout=60)
    assert (process.returncode, out, told) == (130, b"", b"interrupted\n")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    from ettwatch_app.replay import spill

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(spill, "_PER_LINE", 1 << 30)
    result = run(filed(tmp_path, GOOD + "\n"))
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert "TMPDIR" in result.stderr
