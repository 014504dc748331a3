"""A runner over a fake ClickHouse, on clocks that stand still."""

import io
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from ettwatch_app.datafolder import DataFolder
from ettwatch_app.up.assemble import Clocks, build
from ettwatch_app.up.log import Log
from ettwatch_app.up.settings import Limits, UpSettings
from ettwatch_clickhouse import Store, Writer
from up.fakes import FakeStore, FakeWriter
from up.world import Clock


class Bench:
    """One process of `ettwatch up`, driven round by round."""

    def __init__(
        self, root: Path, *, store: FakeStore | None = None, clock: Clock | None = None, **settings: Any
    ) -> None:
        self.folder = DataFolder(root / "data")
        self.folder.spool.mkdir(parents=True, exist_ok=True)
        self.store = store or FakeStore()
        self.clock = clock or Clock()
        self.writer = FakeWriter(self.store, self.clock.now_us)
        self.log = io.StringIO()
        self.settings = replace(UpSettings(self.folder.root, (self.folder.spool,), None), **settings)
        self._stack = ExitStack()
        clocks = Clocks(self.clock.now_us, self.clock.monotonic, self.clock.wait)
        self.runner = build(
            self.settings,
            self.folder,
            cast(Store, self.store),
            cast(Writer, self.writer),
            Log(self.log, "json"),
            clocks,
            self._stack,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def put(self, name: str, lines: bytes) -> Path:
        path = self.folder.spool / name
        with path.open("ab") as file:
            file.write(lines)
        return path

    def go(self, seconds: float = 3.0, step: float = 0.5) -> None:
        """Let time pass, round by round."""
        for _ in range(round(seconds / step)):
            self.clock.wait(step)
            self.runner.round()

    def letters(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.folder.rejected.read_text().splitlines()]

    def told(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]

    def status(self, job: str) -> str:
        return self.store.jobs[job].status


def limits(**changes: Any) -> Limits:
    return replace(Limits(), **changes)
