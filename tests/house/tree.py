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
    "producers/ettwatch_sim",
    "producers/ettwatch_sources",
    "streams/ettwatch_core",
    "streams/ettwatch_faust",
    "sinks/ettwatch_clickhouse",
    "monitor/ettwatch_monitor",
    "app/ettwatch_app",
)


# What is made in the folder and belongs to nobody, where git cannot be asked.
MADE = {".git", ".venv", "node_modules", "__pycache__", "build", "dist", ".ettwatch"}


@cache
def files() -> tuple[Path, ...]:
    """Every file that is, or would be, under version control, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode == 0:
        names = {Path(name) for name in listed.stdout.split("\0") if name}
    else:
        names = {path.relative_to(ROOT) for path in ROOT.rglob("*") if not made(path.relative_to(ROOT))}
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


def made(path: Path) -> bool:
    caches = any(part.endswith("_cache") or part == ".hypothesis" for part in path.parts)
    return caches or path.suffix == ".tmp" or not MADE.isdisjoint(path.parts)


def under(*folders: str, suffix: str = "") -> Iterator[Path]:
    """Yields the files below any of the folders."""
    for path in files():
        if path.suffix.endswith(suffix) and any(path.is_relative_to(folder) for folder in folders):
            yield path


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
