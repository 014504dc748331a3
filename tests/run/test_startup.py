"""A launcher that is told to end before its command runs: what it has told of does not stay open."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ettwatch import exec_shim
from ettwatch.child import Child
from ettwatch_schemas import AttemptEnded, AttemptStarted, JobEnded, JobSubmitted
from support.spooled import environment, events, until

CODE = """
import os, sys
from ettwatch import launcher

def opened(self):
    found = real(self)
    os.kill(os.getpid(), int(sys.argv[1]))
    return found

real, launcher.Launcher._open = launcher.Launcher._open, opened
sys.exit(launcher.Launcher(launcher.Plan(("sleep", "60")), os.environ, print).run())
"""


@pytest.mark.parametrize(("number", "outcome"), [(signal.SIGTERM, "preempted"), (signal.SIGINT, "cancelled")])
def test_a_signal_between_the_first_event_and_the_command(
    spool: Path, tmp_path: Path, number: signal.Signals, outcome: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(int(number))],
        env=environment(spool, {"TMPDIR": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 128 + number, done.stderr
    told = events(spool)
    assert [type(event) for event in told[:2]] == [JobSubmitted, AttemptStarted]
    assert {event.outcome for event in told if isinstance(event, AttemptEnded)} == {outcome}
    assert any(isinstance(event, JobEnded) for event in told) == (outcome == "cancelled")
    assert not [name for name in os.listdir(tmp_path) if name.startswith("ettwatch-run-")]


def test_an_interrupt_while_python_starts_for_the_command_ends_it_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    early = tmp_path / "early.py"
    early.write_text(
        "import os, runpy, signal\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        f"runpy.run_path({exec_shim.__file__!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(exec_shim, "__file__", str(early))
    started = Child(("sleep", "60"), os.environ)
    until(started.has_ended)
    assert started.end(0) == (None, signal.SIGINT)
    assert capfd.readouterr().err == ""
