import tarfile
import zipfile
from pathlib import Path

import pytest

from house.tree import PACKAGES, files, under

NEEDED = {
    "JSON Schemas": ("ettwatch_schemas", "*.schema.json"),
    "examples of the events": ("ettwatch_schemas", "*.json"),
    "migrations": ("ettwatch_clickhouse", "*.sql"),
    "recorded events": ("ettwatch_app", "*.jsonl*"),
    "the default owners": ("ettwatch_app", "owners.yaml"),
}


@pytest.fixture(scope="module")
def packed(wheel: Path) -> set[Path]:
    with zipfile.ZipFile(wheel) as archive:
        return {Path(name) for name in archive.namelist()}


def test_the_wheel_holds_the_packages_and_nothing_else(packed: set[Path]) -> None:
    inside = {path for path in packed if not path.parts[0].endswith(".dist-info")}
    source = {path.relative_to(Path(path.parts[0])) for path in under(*PACKAGES)}
    assert inside == source


def test_the_top_level_names_are_the_packages(packed: set[Path]) -> None:
    names = {path.parts[0] for path in packed}
    assert {name for name in names if not name.endswith(".dist-info")} == {folder.split("/")[1] for folder in PACKAGES}


@pytest.mark.parametrize("package", [folder.split("/")[1] for folder in PACKAGES])
def test_the_types_are_published(packed: set[Path], package: str) -> None:
    assert Path(package, "py.typed") in packed


@pytest.mark.parametrize("what", NEEDED)
def test_the_data_is_there(packed: set[Path], what: str) -> None:
    package, pattern = NEEDED[what]
    assert any(path.parts[0] == package and path.match(pattern) for path in packed), f"no {what} in the wheel"


def test_the_license_is_there(packed: set[Path]) -> None:
    assert any(path.match("*.dist-info/licenses/LICENSE") for path in packed)


def test_the_source_archive_can_be_tested(dist: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {Path(*Path(name).parts[1:]) for name in opened.getnames()}
    left_out = {path for path in files() if path.parts[0] == ".ci" or path.is_relative_to("benchmarks/results")}
    assert set(files()) - left_out <= inside
