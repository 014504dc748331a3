"""What the tests of the SDK share: processes that record, recorders in this one, and what they left in the spool."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ettwatch.default import open_recorder
from ettwatch.identity import Given
from ettwatch.recorder import Recorder
from ettwatch_core import JobState, Rules, Snapshot, apply, snapshot
from ettwatch_schemas import Event, decode_event

ETTWATCH = (sys.executable, "-m", "ettwatch.cli")


def lines(spool: Path) -> list[bytes]:
    """Every line of the spool in the order of writing; each must be whole."""
    files = sorted(spool.glob("*.jsonl"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    found = [line for path in files for line in path.read_bytes().splitlines(keepends=True)]
    assert all(line.endswith(b"\n") for line in found)
    return found


def events(spool: Path, *kinds: str) -> list[Event]:
    """Every event of the spool, decoded, in order of time; of those kinds only if any are given."""
    found = sorted((decode_event(line) for line in lines(spool)), key=lambda event: event.ts)
    assert len({event.id for event in found}) == len(found)
    return [event for event in found if not kinds or event.kind in kinds]


def kinds(found: Iterable[Event]) -> list[str]:
    return [event.kind for event in found]


def timeline(found: Iterable[Event]) -> Snapshot:
    """What the core makes of the events of one job."""
    found = list(found)
    rules = Rules(lateness=None)
    state = JobState(found[0].job)
    for event in found:
        apply(state, event, rules)
    return snapshot(state, rules)


def environment(spool: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "ETTWATCH_SPOOL": str(spool), **(more or {})}


def python(
    code: str, spool: Path, env: Mapping[str, str] | None = None, timeout_s: float = 250
) -> subprocess.CompletedProcess[str]:
    """Run a script that records."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment(spool, env),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def launch(
    command: Iterable[str], spool: Path, *options: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command under `ettwatch run`."""
    return subprocess.run(
        [*ETTWATCH, "run", *options, "--", *command],
        env=environment(spool, env),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def until(done: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until `done()` is true. It may fail meanwhile: a line is being written, or a file was sent and removed."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if done():
                return
        except (AssertionError, OSError, ValueError):
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


class Recording:
    """Recorders in this process, all ended by `close`."""

    def __init__(self, folder: Path) -> None:
        self.spool = folder
        self._open: list[Recorder] = []

    def start(self, env: Mapping[str, str] | None = None, given: Given | None = None) -> Recorder:
        told = {"ETTWATCH_SPOOL": str(self.spool), "ETTWATCH_HEARTBEAT_EVERY_S": "3600", **(env or {})}
        recorder = open_recorder(given or Given(job="job"), told)
        self._open.append(recorder)
        return recorder

    def events(self, *kinds: str) -> list[Event]:
        return events(self.spool, *kinds)

    def close(self) -> None:
        for recorder in reversed(self._open):
            recorder.end()
