"""Scripts that know nothing of ettwatch, run under `ettwatch run --auto`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from support.spooled import ETTWATCH, environment

# Without the trainer extra only what needs no torch can be tested.
collect_ignore = [] if importlib.util.find_spec("torch") else ["test_torch.py", "test_plain.py", "test_hostile.py"]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def auto(spool: Path, tmp_path: Path) -> Run:
    """Run a script under `ettwatch run --auto`."""

    def run(code: str, *options: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(code), encoding="utf-8")
        quick = {"OMP_NUM_THREADS": "1", "ETTWATCH_REPORT_EVERY_S": "1", **(env or {})}
        # Importing torch alone may take half a minute on a busy machine.
        return subprocess.run(
            [*ETTWATCH, "run", "--auto", "--job", "j", *options, "--", sys.executable, str(script)],
            env=environment(spool, quick),
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return run
