"""An older version of the project, from its history, to run beside this one."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

__all__ = ["OLD", "old_version"]

_ROOT: Final = Path(__file__).parents[2]

OLD: Final = "705ca9e6"
"""The first version whose numbers are those of today's: what an upgrade may begin from."""

_PACKAGES: Final = ("app", "monitor", "producers", "schemas", "sinks", "streams")


def old_version(folder: Path) -> dict[str, str] | None:
    """Unpack the older version; return the variables that make a command take it, None where history is cut off."""
    if not _has_history():
        return None
    archive = subprocess.run(["git", "archive", OLD, *_there()], cwd=_ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
        tree.extractall(folder, filter="data")
    more = {"PYTHONPATH": os.pathsep.join(str(folder / name) for name in _PACKAGES)}
    asked = [sys.executable, "-c", "import ettwatch_faust; print(ettwatch_faust.__file__)"]
    said = subprocess.run(asked, env=os.environ | more, capture_output=True, text=True, check=True).stdout
    assert Path(said.strip()).is_relative_to(folder), f"the workers would not be old: {said}"
    return more


def _has_history() -> bool:
    try:
        return (
            subprocess.run(["git", "cat-file", "-e", f"{OLD}^{{commit}}"], cwd=_ROOT, capture_output=True).returncode
            == 0
        )
    except FileNotFoundError:
        return False


def _there() -> list[str]:
    asked = ["git", "ls-tree", "--name-only", OLD]
    listed = subprocess.run(asked, cwd=_ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split() if name in _PACKAGES]
