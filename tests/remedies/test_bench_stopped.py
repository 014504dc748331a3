"""A bench that is stopped leaves no training behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes import alive

pytestmark = pytest.mark.torch

_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
from ettwatch_app.remedies import running
from ettwatch_app.commands.bench_remedies import bench_remedies
code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
run = [sys.executable, "-m", "ettwatch.cli", "run", "--job", "x", "--", sys.executable, "-c", code, sys.argv[1]]
running.job_command = lambda *_, **__: (run, {})
bench_remedies(["--quick", "--only", "all", "--out", sys.argv[2]], prog_name="ettwatch bench-remedies")
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_no_training_is_left_behind(number: int, code: int, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(told), str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 120
        while not (told.exists() and told.read_text()):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        trainer = int(told.read_text())
        assert alive(trainer)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    deadline = time.monotonic() + 60
    while alive(trainer) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(trainer)
