import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ettwatch_app.datafolder import DataFolder, locate, open_store
from ettwatch_clickhouse import Writer
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_schemas import decode_event

CASES = Path(__file__).parent.parent / "cases"
RULES = Rules(lateness=None)


def fill(folder: DataFolder, files: list[Path]) -> None:
    """Make a data folder of event files, without `up`."""
    states: dict[str, JobState] = {}
    with open_store(folder, create_missing=True) as store:
        writer = Writer(store)
        for path in files:
            for line in path.read_bytes().splitlines():
                event = decode_event(line)
                apply(states.setdefault(event.job, JobState(event.job)), event, RULES)
                writer.event(event, line)
        for state in states.values():
            writer.snapshot(snapshot(state, RULES))
        writer.flush()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A data folder with the jobs of all cases. Not to be changed."""
    folder = locate(tmp_path_factory.mktemp("filled") / "data")
    fill(folder, sorted(CASES.glob("*.jsonl")))
    return folder


@pytest.fixture
def own_filled(tmp_path: Path) -> DataFolder:
    """A data folder with a few jobs, to be changed as one likes."""
    folder = locate(tmp_path / "data")
    fill(folder, [CASES / f"{name}.jsonl" for name in ("01-worked-example", "04-lazy-compile", "07-still-running")])
    return folder


@pytest.fixture
def at_filled(filled: DataFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataFolder]:
    """The same, named by the environment, from a folder of its own."""
    monkeypatch.setenv("ETTWATCH_DATA", str(filled.root))
    before = Path.cwd()
    os.chdir(filled.root.parent)
    yield filled
    os.chdir(before)
