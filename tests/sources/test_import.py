"""`ettwatch import`: folders, kinds told by themselves, what is refused and why, and going on where it stopped."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands.import_ import import_
from ettwatch_schemas import Event, decode_event
from ettwatch_sources import FLAGS, KIND_NAMES
from support.imported import folded

T = 1_700_000_000


def mllog(n: int) -> str:
    at = (T + n) * 1000
    entries: list[tuple[int, str, dict[str, Any]]] = [(at, "init_start", {}), (at + 5000, "run_start", {})]
    entries += [(at + 65_000, "block_stop", {"samples_count": 10})]
    entries += [(at + 65_000, "run_stop", {"status": "success"})]
    return "".join(f":::MLLOG {json.dumps({'key': k, 'time_ms': ms, 'metadata': m})}\n" for ms, k, m in entries)


def slurm(n: int) -> str:
    times = "|".join(str(T + n + more) for more in (0, 0, 60, 3600))
    return f"JobID|State|Submit|Eligible|Start|End\n{n + 1}|COMPLETED|{times}\n"


def titan(n: int) -> str:
    clock = f"{n // 60 % 60:02}:{n % 60:02}"
    head = "[rank0]:[titan] 2025-06-04"
    return (
        f"{head} 08:{clock},000 - root - INFO - Training starts at step 1.\n"
        f"{head} 09:{clock},000 - root - INFO - step:  1  loss: 12.2\n"
    )


def goodput(n: int) -> str:
    entries: list[dict[str, Any]] = [{"job_start_time": T + n}, {"step_count": 0, "step_start_time": T + n + 5}]
    entries += [{"step_count": 1, "step_start_time": T + n + 15}, {"job_end_time": T + n + 15}]
    return "".join(json.dumps({"job_name": f"g{n}", **entry}) + "\n" for entry in entries)


def noise(n: int) -> str:
    return f"nothing that is known, {n}\n" if n % 2 else ""


KINDS: list[Callable[[int], str]] = [mllog, slurm, titan, goodput, noise]


def folder(root: Path, number: int) -> Path:
    logs = root / "logs"
    for n in range(number):
        path = logs / f"{n % 50:02}" / f"run-{n:05}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = KINDS[n % 5](n).encode()
        path.write_bytes(data if n % 7 or not data else gzip.compress(data))
    return logs


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(import_, [str(word) for word in words])


def events(out: Path) -> list[Event]:
    files = sorted(out.glob("*.jsonl"))
    return [decode_event(line) for file in files for line in file.read_bytes().splitlines()]


@pytest.mark.slow
def test_ten_thousand_mixed_files_in_one_command(tmp_path: Path) -> None:
    logs, out, report = folder(tmp_path, 10_000), tmp_path / "out", tmp_path / "report.jsonl"
    done = run("auto", logs, "--out", out, "--report", report)
    assert done.exit_code == 1  # some were refused
    assert "from 8,000 files" in done.output
    assert "2,000 files and 0 lines refused" in done.output
    told = [json.loads(line) for line in report.read_text().splitlines()]
    assert Counter(one["kind"] for one in told) == {
        **dict.fromkeys(("mllog", "slurm", "torchtitan", "mlgoodput", None), 2000),
    }
    reasons = Counter(problem for one in told if one["kind"] is None for problem in one["problems"])
    assert reasons["it is empty"] == 1000
    assert sum(reasons.values()) == 2000
    jobs = folded(events(out))
    assert len(jobs) == 8000
    # A known answer among many: 60 s of training after 5 s.
    some = next(shot.summary for name, shot in jobs.items() if name.endswith("run-00005"))
    assert (some.tts_s, some.effective_s) == (5.0, 60.0)
    assert some.ett_pct == pytest.approx(100 * 60 / 65)


# By another thread of the process itself, for which the import waits before it is through: however busy the machine is,
# it is in the middle.
INTERRUPTED = """
import os, signal, threading, time
from ettwatch_app.commands.import_ import import_
from ettwatch_sources.journal import Journal

began, never = threading.Event(), threading.Event()
real, lines = Journal.add, 0

def add(*args, **told):
    global lines
    real(*args, **told)
    lines += 1
    if lines == 100: began.set()
    if lines == 1_400: never.wait(100)

def interrupt():
    began.wait()
    os.kill(os.getpid(), signal.SIGINT)

Journal.add = add
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt, daemon=True).start()
import_()
"""


def test_it_goes_on_after_ctrl_c(tmp_path: Path) -> None:
    logs, out = folder(tmp_path, 1500), tmp_path / "out"
    journal = out / ".imports" / "journal.jsonl"
    words = [sys.executable, "-c", INTERRUPTED, "auto", str(logs), "--out", str(out)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    done_before = len(journal.read_text().splitlines())
    assert process.returncode == 130, errors
    assert 0 < done_before < 1500
    assert errors.endswith("the same command goes on where it was\ninterrupted\n")
    with journal.open("a") as file:
        file.write('{"file": "/cut off in the mid')  # as a kill leaves it
    again = run("auto", logs, "--out", out)
    assert f"{done_before:,} files were imported before" in again.output
    assert len(folded(events(out))) == 1200
    third = run("auto", logs, "--out", out)
    assert "0 events of 0 jobs from 0 files; 1,500 files were imported before" in third.output
    assert third.exit_code == 0
    # What was refused before is listed still, and a report has every file.
    assert "(300 of them refused)" in third.output
    assert third.output.count("refused before: ") == 21
    report = tmp_path / "report.jsonl"
    run("auto", logs, "--out", out, "--report", report)
    told = [json.loads(line) for line in report.read_text().splitlines()]
    assert Counter(one["kind"] for one in told) == {
        **dict.fromkeys(("mllog", "slurm", "torchtitan", "mlgoodput", None), 300),
    }
    assert sum(one["events"] for one in told) == len({event.id for event in events(out)})
    # With other settings, and files that have changed, are read again.
    changed = logs / "00" / "run-00000.log"
    changed.write_text(mllog(99))
    assert "from 1 file;" in run("auto", logs, "--out", out).output
    assert "from 1,200 files" in run("auto", logs, "--out", out, "--team", "ads").output
    assert "from 1,200 files" in run("auto", logs, "--out", out, "--team", "ads", "--again").output


def test_attempts_of_one_job_in_several_files(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"{n}.log").write_text(titan(n * 600))
    files = [tmp_path / f"{n}.log" for n in range(3)]
    out = tmp_path / "out"
    assert run("torchtitan", *files, "--out", out, "--job", "llama", "--restarts", "--gpus", "64").exit_code == 0
    (job,) = (shot.summary for shot in folded(events(out)).values())
    assert (job.job, job.attempts, job.nof, job.gpus) == ("llama", 3, 2, 64)
    # A fourth one, later: the numbers go on after those of the journal.
    (tmp_path / "3.log").write_text(titan(1800))
    files.append(tmp_path / "3.log")
    assert run("torchtitan", *files, "--out", out, "--job", "llama", "--restarts", "--gpus", "64").exit_code == 0
    (job,) = (shot.summary for shot in folded(events(out)).values())
    assert job.attempts == 4
    assert run("torchtitan", files[0], "--restarts").exit_code == 2


def test_events_on_standard_output_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("x\n" + mllog(0))
    done = run("mllog", path, "--out", "-")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["origin"] for line in lines} == {f"{path}:{n}" for n in (2, 3, 4, 5)}
    assert run("mllog", path, "--out", "-").stdout == done.stdout


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(mllog(1).encode() * 50)[:-20])
    (tmp_path / "bin.log").write_bytes(b"\0\1\2\3" * 100)
    (tmp_path / "other.log").write_text("hello\n")
    (tmp_path / "zip.log").write_bytes(b"PK\x03\x04....")
    os.mkfifo(tmp_path / "pipe.log")
    done = run("auto", tmp_path, tmp_path / "missing.log", "--out", tmp_path / "out")
    assert done.exit_code == 1
    for text in (
        "missing.log: there is no such file",
        "bin.log: it is no text",
        "other.log: it looks like no kind that is known",
        "zip.log: this is a zip archive",
        "pipe.log: it is no regular file",
        "cut off",
    ):
        assert text in done.output, text
    assert run("auto", tmp_path / "other.log", "--out", tmp_path / "out2").exit_code == 2


def test_wrong_options_are_told(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("version: 1\nevents: [{kind: nothing}]\n")
    for words, says in (
        (["mapped", "x"], "needs --mapping FILE"),
        (["mapped", "x", "--mapping", str(tmp_path / "m.yaml")], "events[0].kind: must be one of"),
        (["mapped", "x", "--mapping", str(tmp_path / "none")], "cannot read"),
        (["auto", "x", "--zone", "Mars/Base"], "is no time zone"),
        (["nokind", "x"], "is not one of"),
    ):
        done = CliRunner().invoke(import_, words)
        assert done.exit_code == 2, words
        assert says in done.output, words


def test_flags_are_told_at_the_end_and_all_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(titan(1))
    done = run("auto", tmp_path / "a.log", "--out", tmp_path / "out")
    (line,) = (line for line in done.output.splitlines() if line.startswith("flags: "))
    codes = {part.split(" ")[0] for part in line.removeprefix("flags: ").split(", ")}
    assert codes <= set(FLAGS)
    assert {"no_end", "zone_assumed", "position_is_step"} <= codes
    assert all(set(kind.unknown) <= set(FLAGS) for kind in KIND_NAMES.values())


def test_what_it_says_counts_one_and_each_job_once(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(mllog(0))
    one = run("auto", log, "--out", tmp_path / "out")
    assert "mllog: 7 events from 1 file\n7 events of 1 job from 1 file; 0 files and 0 lines refused\n" in one.stderr
    assert one.stderr.endswith(f"written to {tmp_path / 'out'}\n")
    (tmp_path / "b.log").write_text(mllog(5000))
    two = run("mllog", log, tmp_path / "b.log", "--job", "j", "--restarts", "--out", "-")
    assert "of 1 job from 2 files" in two.stderr
    assert "written to" not in two.stderr
    (tmp_path / "c.log").write_text(f"{mllog(0)}:::MLLOG x\n")
    assert "1 line refused" in run("mllog", tmp_path / "c.log", "--out", "-").stderr


@pytest.mark.parametrize("kind", ["kubernetes", "ray"])
def test_what_is_followed_is_not_imported(kind: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    done = CliRunner().invoke(import_, [kind, str(tmp_path / "x.json")])
    assert done.exit_code == 2
    assert f"{kind} is followed, not imported: `ettwatch watch {kind}`" in done.output
