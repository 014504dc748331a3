"""The distribution, built once, for the tests that look into it or install it."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from house.tree import ROOT


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive, and the wheel that was built from it; shared by all test processes."""
    worker = tmp_path_factory.getbasetemp()
    shared = worker.parent if os.environ.get("PYTEST_XDIST_WORKER") else worker
    folder = shared / "dist"
    with (shared / "dist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
            built = subprocess.run(build, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found
