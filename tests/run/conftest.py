from pathlib import Path

import pytest

from ettwatch import log


@pytest.fixture(autouse=True)
def _fresh_warnings() -> None:
    """Each test sees its warnings, whatever was logged before."""
    log._said.clear()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"
