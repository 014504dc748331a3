"""Every variable that deploy/ sets is one that ettwatch reads, and that a page of docs/ tells of."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTING = re.compile(r"\bETTWATCH_[A-Z0-9_]*[A-Z0-9]\b")
FOLDERS = ("schemas", "producers", "streams", "sinks", "app")
FILES = [
    path
    for path in sorted((ROOT / "deploy").rglob("*"))
    if path.is_file() and "secrets" not in path.parts and path.suffix != ".pyc"
]


def named(paths: list[Path]) -> set[str]:
    return {name for path in paths for name in SETTING.findall(path.read_text(encoding="utf-8"))}


USED = {path: named([path]) for path in FILES}


@pytest.mark.parametrize(
    "path", [path for path in FILES if USED[path]], ids=lambda path: str(path.relative_to(ROOT / "deploy"))
)
def test_a_variable_is_read_and_documented(path: Path) -> None:
    read = named([code for folder in FOLDERS for code in (ROOT / folder).rglob("*.py")])
    told = named(sorted((ROOT / "docs").glob("*.md")))
    assert USED[path] <= read, f"no code reads {sorted(USED[path] - read)}"
    assert USED[path] <= told, f"no page of docs/ tells of {sorted(USED[path] - told)}"


def test_the_chart_and_compose_set_what_a_worker_and_a_sink_need() -> None:
    needed = {"ETTWATCH_KAFKA", "ETTWATCH_CLICKHOUSE", "ETTWATCH_CLICKHOUSE_PASSWORD_FILE", "ETTWATCH_WEB"}
    for part in ("compose.yaml", "helm", "systemd"):
        found = {name for path, names in USED.items() if part in path.parts for name in names}
        assert needed - {"ETTWATCH_WEB"} <= found, part
