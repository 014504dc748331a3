"""How far the training is, read from the trainer's own lines."""

import re
import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ettwatch_app.demo.children import Child
from ettwatch_app.render import clean, stderr_console

_LINE = re.compile(r"^attempt (\d+)  (?:step (\d+)/(\d+)  )?(.*)$")
_QUIET_S = 10.0


class TrainingProgress:
    """Shows attempt, step and what is going on: as a bar on a terminal, else as a line every few seconds."""

    def __init__(self, log: Child, steps: int) -> None:
        self._log = log
        self._at = 0
        self._rest = b""
        self._console = stderr_console()
        self._spoke = float("-inf")
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID = self._progress.add_task("starting the trainer", total=steps)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def look(self) -> None:
        """Read what the trainer has said since the last look, and show it."""
        with self._log.log.open("rb") as file:
            file.seek(self._at)
            data = self._rest + file.read()
            self._at = file.tell()
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            self._hear(line.decode("utf-8", "replace"))

    def _hear(self, line: str) -> None:
        found = _LINE.match(line)
        if found is None:
            if line.startswith("ettwatch run: "):
                self._say(line)
            return
        attempt, step, _, text = found.groups()
        what = "training" if step and "loss" in text and "evaluated" not in text else clean(text, 48)
        done = None if step is None else float(step)
        self._progress.update(self._task, description=f"attempt {attempt}: {what}", completed=done)
        if self._progress.disable and (what != "training" or time.monotonic() - self._spoke >= _QUIET_S):
            self._spoke = time.monotonic()
            self._console.print(clean(line, 100), soft_wrap=True)

    def _say(self, line: str) -> None:
        self._console.print(clean(line, 200), soft_wrap=True)
