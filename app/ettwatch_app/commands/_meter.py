"""A progress bar on standard error, for work that takes longer than a second and is watched."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, Task, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from ettwatch_app.render import stderr_console

_QUIET_S = 1.0


class _Share(TaskProgressColumn):
    """The percentage that is done; where nobody knows of how much, the count."""

    def render(self, task: Task) -> Text:
        """Return what stands behind the bar."""
        return Text(f"{task.completed:,.0f}") if task.total is None else super().render(task)


class Bar:
    """A meter that shows nothing in the first second, nor where standard error is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._what = ""
        self._total: int | None = None
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, what: str, total: int | None) -> None:
        """Start a part of the work of `total` units (None: not known)."""
        self._what, self._total, self._done = what, total, 0
        if self._progress is not None and self._task is not None:
            self._progress.reset(self._task, description=what, total=total)

    def advance(self, units: int) -> None:
        """Tell that `units` more are done."""
        self.set(self._done + units, self._total)

    def set(self, done: int, total: int | None) -> None:
        """Tell how many units are done, and how many there are."""
        self._done, self._total = done, total
        if not self._shown:
            return
        if self._progress is None:
            if time.monotonic() - self._began < _QUIET_S:
                return
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                _Share(),
                TimeRemainingColumn(),
                console=stderr_console(),
                transient=True,
            )
            self._task = self._progress.add_task(self._what, total=self._total)
            self._progress.start()
        if self._task is not None:
            self._progress.update(self._task, completed=done, total=total)
