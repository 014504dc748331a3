import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ettwatch
from house.tree import ROOT, text

PROJECT = tomllib.loads(text(Path("pyproject.toml")))["project"]


def test_one_version_everywhere() -> None:
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+)\]?", text(Path("CHANGELOG.md")), re.MULTILINE)
    assert newest, "CHANGELOG.md has no entry for a version"
    assert newest[1] == PROJECT["version"] == ettwatch.__version__


def test_the_arrows_between_the_packages_point_down() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", checked.stdout)


def test_every_package_that_is_asked_for_is_pinned() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", text(Path("constraints.txt")), re.MULTILINE))
    asked = [*PROJECT["dependencies"], *(need for extra in PROJECT["optional-dependencies"].values() for need in extra)]
    names = {re.split(r"[\[<>=;~! ]", need)[0].lower().replace("_", "-") for need in asked} - {"ettwatch"}
    assert names <= pins.keys(), f"constraints.txt lacks {sorted(names - pins.keys())}: make constraints"


def test_every_license_is_the_same() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004" in text(Path("LICENSE"))
