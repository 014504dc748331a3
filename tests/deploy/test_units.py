"""The units of systemd: what systemd-analyze says of them, and that they hold no secret."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))


def verify(folder: Path, name: str) -> "subprocess.CompletedProcess[str]":
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd")
    return subprocess.run(["systemd-analyze", "verify", folder / name], capture_output=True, text=True)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with a program that is there; the drop-in of the login beside each."""
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8").replace("/opt/ettwatch/bin/ettwatch", "/bin/true")
        if path.suffix == ".service":
            (tmp_path / path.name).write_text(text, encoding="utf-8")
            (tmp_path / f"{path.name}.d").mkdir()
            shutil.copy(FOLDER / "login.conf", tmp_path / f"{path.name}.d")
    return tmp_path


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_unit(units: Path, name: str) -> None:
    done = verify(units, name.replace("@.", "@1.") if "@" in name else name)
    assert done.returncode == 0, done.stderr
    assert str(units) not in done.stderr, done.stderr


def test_systemd_would_see_a_fault(units: Path) -> None:
    path = units / "ettwatch-sink.service"
    path.write_text(
        path.read_text(encoding="utf-8").replace("DynamicUser=yes", "DynamicUser=perhaps"), encoding="utf-8"
    )
    done = verify(units, path.name)
    assert done.returncode != 0
    assert "perhaps" in done.stderr


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_confined_and_comes_back(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    for line in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="):
        assert f"\n{line}\n" in text
    assert re.search(r"^Restart=on-failure$", text, re.MULTILINE)
    assert re.search(r"^MemoryMax=\dG$", text, re.MULTILINE)


def test_no_secret_is_in_a_unit_or_its_environment() -> None:
    for path in FOLDER.iterdir():
        for name in re.findall(r"ETTWATCH_\w*PASSWORD\w*(?==)", path.read_text(encoding="utf-8")):
            assert name.endswith("_FILE"), f"{path.name}: {name}"
