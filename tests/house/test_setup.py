"""What `make` says on a machine where something is missing: scripts/venv.sh on its own, in an empty folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from house.tree import ROOT, text, under

OLD = 'case "$2" in *exit*) exit 1 ;; *) echo 3.9.18 ;; esac'
WITHOUT_VENV = f'case "$2" in *ensurepip*) exit 1 ;; *) exec {sys.executable} "$@" ;; esac'
FAILS_TO_MAKE = f'case "$1" in -m) exit 1 ;; *) exec {sys.executable} "$@" ;; esac'
FULL = "printf 'Filesystem 1024-blocks Used Available\\nx 9 9 300000\\n'"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "a house"  # with a space: people have such folders
    for name in ("scripts/venv.sh", "pyproject.toml", "constraints.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def stand_in(path: Path, script: str) -> str:
    """Writes a shell script that stands in for a program; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def setup(house: Path, *sets: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "scripts/venv.sh", *sets],
        cwd=house,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_an_old_python_is_refused_by_name(house: Path) -> None:
    code, said = setup(house, PYTHON=stand_in(house / "bin/python9", OLD))
    assert code == 2
    assert "not a Python 3.11 or newer (it says: 3.9.18)" in said


def test_no_new_enough_python_at_all(house: Path) -> None:
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        stand_in(house / "bin" / name, OLD)
    code, said = setup(house, PYTHON="", PATH=f"{house / 'bin'}:/usr/bin:/bin")
    assert code == 2
    assert "no Python 3.11 or newer was found (python3 is: 3.9.18)" in said
    assert "make PYTHON=" in said


def test_a_python_without_venv(house: Path) -> None:
    code, said = setup(house, PYTHON=stand_in(house / "bin/python9", WITHOUT_VENV))
    assert code == 2
    assert "has no venv module" in said
    assert "apt-get install python3-venv" in said


def test_a_disk_that_is_too_small(house: Path) -> None:
    stand_in(house / "bin/df", FULL)
    code, said = setup(house, "cli", PYTHON=sys.executable, PATH=f"{house / 'bin'}:{os.environ['PATH']}")
    assert code == 2
    assert "too little disk space for the commands and the embedded ClickHouse: 1500 MB are needed" in said
    assert "292 are free" in said
    assert not (house / ".venv").exists()


def test_a_broken_environment_is_made_anew_and_a_missing_network_is_told(house: Path) -> None:
    (house / ".venv/bin").mkdir(parents=True)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "1", "PIP_NO_CACHE_DIR": "1"}
    code, said = setup(house, "cli", PYTHON=sys.executable, **nowhere)
    assert code == 2
    assert "(it is broken)" in said
    assert "pip could not reach its package index" in said

    assert setup(house, PYTHON=sys.executable) == (0, "")

    fails = stand_in(house.parent / "python9", FAILS_TO_MAKE)
    code, said = setup(house.rename(house.with_name("another")), PYTHON=fails)
    assert code == 2
    assert "(it was moved here from another folder)" in said
    assert "could not make" in said


def test_an_unknown_set(house: Path) -> None:
    code, said = setup(house, "everything", PYTHON=sys.executable)
    assert code == 2
    assert "unknown set of packages: everything" in said


@pytest.mark.parametrize("script", [".ci/run", *(str(path) for path in under("scripts", suffix=".sh"))])
def test_a_script_is_bash_that_stops_on_faults(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    lines = text(Path(script)).splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert any(line.startswith(("set -euo pipefail", "set -uo pipefail")) for line in lines)
    subprocess.run(["bash", "-n", str(ROOT / script)], check=True)


def test_make_alone_lists_its_targets() -> None:
    listed = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {"demo", "demo-lite", "test", "lint"} <= {line.split()[1] for line in listed.stdout.splitlines()}
