"""The examples of docs/adapters.md, run for real where the framework is installed, else on its order of calls."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.spooled import python

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
FAKES = Path(__file__).parent / "fakes"

Example = Callable[..., None]


def block(heading: str) -> str:
    """The Python of one section of the page."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (found,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(found)


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def example(spool: Path) -> Example:
    """Run the example of a section after a stage has been set."""

    def run(heading: str, stage: str, *needs: str, then: str = "", env: dict[str, str] | None = None) -> None:
        paths = [] if all(installed(name) for name in needs) else [str(FAKES)]
        path = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
        told = {"ETTWATCH_JOB": "j", "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **(env or {})}
        done = python(f"{stage}\n{block(heading)}\n{then}", spool, told)
        assert done.returncode == 0, done.stderr
        assert "ettwatch:" not in done.stderr

    return run
