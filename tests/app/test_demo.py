"""The demo: the light one for real; of the full one everything but the training."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands.demo import demo
from ettwatch_app.datafolder import DataFolder, FolderError, Ownership, UpInfo, announce, locate, open_store
from ettwatch_app.demo import acts
from ettwatch_app.demo.children import Child, Children
from ettwatch_app.demo.folder import fresh
from ettwatch_app.demo.progress import TrainingProgress
from ettwatch_app.demo.show import _QUESTION, QUERIES
from ettwatch_trainer import launch
from support.processes import alive

ENVIRONMENT = dict(os.environ)


def run(*args: str) -> Result:
    return CliRunner().invoke(demo, list(args))


def test_the_light_demo_shows_report_queries_and_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--lite")
    assert result.exit_code == 0, result.output
    out = result.stdout
    assert "ETT " in out
    assert "x failed or preempted" in out
    assert "#1 " in out
    for question, query in QUERIES:
        assert question in out
        assert query in out
    assert "gives the same numbers as SQL, field by field" in out
    assert "The data lie in .ettwatch/demo. Go on with:" in out
    folder = locate(tmp_path / ".ettwatch/demo")
    events = [json.loads(line) for line in (folder.root / "events.jsonl").read_text().splitlines()]
    assert f"a replay of the {len(events)} events" in out
    with open_store(folder) as store:
        assert store.query("SELECT status, nof, attempts FROM jobs").rows == [("succeeded", 1, 2)]
    assert f'  ettwatch sql "{_QUESTION}" --data .ettwatch/demo\n' in out, "a line to paste is one line"
    # The hints name commands that work.
    (command,) = [line.strip() for line in out.splitlines() if line.strip().startswith("ettwatch report")]
    assert command.endswith("--data .ettwatch/demo")
    # Once more: the folder is the demo's own.
    assert run("--lite", "--keep").exit_code == 0


def test_the_way_on_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ettwatch_app.demo.show import _called

    for place in ("venv/bin", "other"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "ettwatch").write_text("#!/bin/sh\n")
        (tmp_path / place / "ettwatch").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "venv/bin"))
    assert _called(str(tmp_path / "venv/bin/ettwatch")) == "ettwatch"
    assert _called("venv/bin/ettwatch") == "ettwatch"
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert _called("venv/bin/ettwatch") == "venv/bin/ettwatch"
    assert _called(str(tmp_path / "venv/bin/ettwatch")) == "venv/bin/ettwatch"
    monkeypatch.chdir(tmp_path / "other")
    assert _called(str(tmp_path / "venv/bin/ettwatch")) == str(tmp_path / "venv/bin/ettwatch")
    assert _called("/usr/lib/python3/site-packages/pytest/__main__.py") == "ettwatch"


def test_numbers_that_do_not_agree_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ettwatch_app.demo import show

    monkeypatch.setattr(show, "differences", lambda summary, _: [f"nof: SQL says {summary.nof}, replay says 7"])
    result = run("--lite", "--data", str(tmp_path / "d"))
    assert result.exit_code == 1
    assert "gives other numbers than SQL:\n  nof: SQL says 1, replay says 7\n" in result.stdout


def test_differences_are_found_field_by_field(filled: DataFolder, tmp_path: Path) -> None:
    from ettwatch_app.demo.check import differences, export_events
    from ettwatch_app.owners import find_owners
    from ettwatch_app.reading import read_job

    with open_store(filled) as store:
        view = read_job(store, "worked-example", find_owners(tmp_path / "none"))
        number = export_events(store, "worked-example", tmp_path / "events.jsonl")
    assert view is not None
    assert number == 65
    assert differences(view.summary, tmp_path / "events.jsonl") == []
    wrong = view.summary.model_copy(update={"nof": 4, "tts_s": None})
    assert differences(wrong, tmp_path / "events.jsonl") == [
        "tts_s: SQL says None, replay says 480.0",
        "nof: SQL says 4, replay says 1",
    ]


def test_without_torch_it_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(acts, "has_torch", lambda: False)
    result = run("--data", str(tmp_path / "d"))
    assert result.exit_code == 2
    assert "pip install 'ettwatch[trainer]'" in result.stderr
    assert "ettwatch demo --lite" in result.stderr
    assert not (tmp_path / "d").exists()


def fake_training(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the full demo run a script instead of the trainer."""
    argv = [sys.executable, "-m", "ettwatch.cli", "run", "--job", launch.JOB, "--", sys.executable, "-c", code]
    monkeypatch.setattr(launch, "job_command", lambda _: (argv, {}))
    monkeypatch.setattr(acts, "has_torch", lambda: True)


def test_the_full_demo_around_a_short_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_training(
        monkeypatch,
        "import ettwatch, time\n"
        "with ettwatch.init() as rec:\n"
        "    with rec.training(position=0, step=0):\n"
        "        for n in range(3):\n"
        "            time.sleep(0.05)\n"
        "            rec.step(10)\n"
        "            print(f'attempt 0  step {n + 1}/3  loss 0.5  1 samples/s', flush=True)\n",
    )
    monkeypatch.setenv("ETTWATCH_JOB", "another-job")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "7")
    data = tmp_path / "d"
    result = run("--data", str(data))
    assert result.exit_code == 0, result.output
    assert "attempt 0  step 1/3  loss 0.5" in result.stderr
    assert f"{launch.JOB}  succeeded" in result.stdout
    assert "1 attempt, 0 failures" in result.stdout
    assert "gives the same numbers as SQL" in result.stdout
    assert "stopped" in (data / "up.log").read_text()


def test_a_training_that_fails_shows_the_end_of_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_training(monkeypatch, "import sys; print('the last words'); sys.exit(3)")
    result = run("--data", str(tmp_path / "d"))
    assert result.exit_code == 2
    assert "the training ended with exit code 3; the end of" in result.stderr
    assert "the last words" in result.stderr
    assert "the report" not in result.stdout


def test_an_up_that_cannot_start_shows_the_end_of_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(acts, "_ettwatch", lambda *_: [sys.executable, "-c", "raise SystemExit('no such luck')"])
    monkeypatch.setattr(acts, "has_torch", lambda: True)
    for option in ([], ["--lite"]):
        result = run("--data", str(tmp_path / "d"), *option)
        assert result.exit_code == 2
        assert "ended with exit code 1" in result.stderr
        assert "no such luck" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind_when_it_is_stopped(number: int, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from ettwatch_app.demo import acts\n"
        "from ettwatch_trainer import launch\n"
        "acts.has_torch = lambda: True\n"
        "code = 'import time, os; print(\"attempt 0  pid\", os.getpid(), flush=True); time.sleep(600)'\n"
        "argv = [sys.executable, '-m', 'ettwatch.cli', 'run', '--job', 'x', '--', sys.executable, '-c', code]\n"
        "launch.job_command = lambda _: (argv, {})\n"
        "from ettwatch_app.commands.demo import demo\n"
        f"demo(['--data', {str(tmp_path / 'd')!r}], prog_name='ettwatch demo')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("attempt 0  pid"))
        worker = int(line.split()[-1])
        up = json.loads((tmp_path / "d" / "up.json").read_text())["pid"]
        assert alive(worker)
        assert alive(up)
        process.send_signal(number)
        process.communicate(timeout=120)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[signal.Signals(number)]
    deadline = time.monotonic() + 60
    while (alive(worker) or alive(up)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(worker)
    assert not alive(up)


def test_a_child_that_will_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ettwatch_app.demo import children

    monkeypatch.setattr(children, "_GRACE_S", 0.3)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(100)"
    with Children() as started:
        child = started.start([sys.executable, "-c", code], ENVIRONMENT, tmp_path / "log")
        while "ready" not in child.tail():
            time.sleep(0.02)
    assert child.exit_code == -signal.SIGKILL


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    code = "for n in range(1000): print('line', n)"
    child = Child([sys.executable, "-c", code], ENVIRONMENT, tmp_path / "log")
    assert child.wait(60) == 0
    assert child.tail(2) == "line 998\nline 999"


def test_progress_reads_the_lines_of_the_trainer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "print('W1129 some warning of torch')\n"
        "print('attempt 0  first step, compiling')\n"
        "for n in range(50): print(f'attempt 0  step {n}/50  loss 0.5  10 samples/s')\n"
        "print('ettwatch run: the command failed; restart 1 of 1')\n"
        "print('attempt 1  resumed at step 40')\n"
        "print('attempt 1  no end of li', end='')\n"
    )
    child = Child([sys.executable, "-c", code], ENVIRONMENT, tmp_path / "log")
    child.wait(60)
    with TrainingProgress(child, 50) as progress:
        progress.look()
        progress.look()
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "attempt 0  first step, compiling",
        "ettwatch run: the command failed; restart 1 of 1",
        "attempt 1  resumed at step 40",
    ]


def test_a_fresh_folder_is_emptied_only_if_a_demo_made_it(tmp_path: Path) -> None:
    folder = fresh(tmp_path / "demo")
    (folder.spool / "old.jsonl").write_text("x")
    assert list(fresh(tmp_path / "demo").spool.iterdir()) == []
    mine = tmp_path / "mine"
    mine.mkdir()
    fresh(mine)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    with pytest.raises(FolderError, match="is not empty and no demo made it"):
        fresh(other)
    assert (other / "thesis.tex").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="is no folder"):
        fresh(tmp_path / "file")


def test_a_folder_in_which_an_up_lives_is_not_emptied(tmp_path: Path) -> None:
    folder = fresh(tmp_path / "demo")
    with Ownership(folder, "ettwatch up"):
        announce(folder, UpInfo(os.getpid(), None, "2026-01-01T00:00:00Z", ()))
        with pytest.raises(FolderError, match=r"`ettwatch up` \(process \d+\) lives in"):
            fresh(tmp_path / "demo")
    assert folder.up_json.exists()
