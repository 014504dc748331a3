"""The files of the project, as the house tests see them."""

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "schemas/ettwatch_schemas",
    "producers/ettwatch",
    "producers/ettwatch_trainer",
    "streams/ettwatch_core",
    "sinks/ettwatch_clickhouse",
    "app/ettwatch_app",
)


@cache
def files() -> tuple[Path, ...]:
    """Every file that is, or would be, under version control, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted(Path(name) for name in set(listed.split("\0")) if name and (ROOT / name).is_file()))


def under(*folders: str, suffix: str = "") -> Iterator[Path]:
    """Yields the files below any of the folders."""
    for path in files():
        if path.suffix.endswith(suffix) and any(path.is_relative_to(folder) for folder in folders):
            yield path


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
