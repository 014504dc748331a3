"""Runs the steps of a start-up, each as soon as what it needs is done, under one deadline."""

from __future__ import annotations

import contextvars
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from time import monotonic
from typing import Any

from ettwatch import Recorder
from ettwatch_trainer.remedies import telling


class StartupError(RuntimeError):
    """A start-up that cannot go on. `step`: the one that failed or hangs, where there is one."""

    def __init__(self, text: str, step: str | None = None) -> None:
        super().__init__(text)
        self.step = step


@dataclass(slots=True)
class _Step:
    name: str
    call: Callable[..., Any]
    needs: tuple[str, ...]
    waits: set[str]
    phase: str | None
    here: bool
    began: float | None = None
    ended: float | None = None
    done: bool = False  # ended well
    thread: threading.Thread | None = None
    result: Any = field(default=None, repr=False)

    @property
    def running(self) -> bool:
        return self.began is not None and self.ended is None


class Startup:
    """Steps with dependencies. `run` starts each in a thread as soon as those it comes after are done.

    A step that fails ends it: what has not begun never does, `cancelled` is set, and `run` raises. What runs in a
    thread cannot be stopped from outside: a step that may take long looks at `cancelled`. `deadline_s`: the longest
    that `run` waits for all steps together.
    """

    def __init__(self, *, deadline_s: float | None = None, recorder: Recorder | None = None) -> None:
        if deadline_s is not None and not deadline_s > 0:
            raise ValueError(f"deadline_s is {deadline_s}; give seconds above 0, or None for no deadline")
        self.cancelled = threading.Event()
        self.deadline_s = deadline_s
        self._recorder = recorder
        self._steps: dict[str, _Step] = {}
        self._lock = threading.Lock()
        # What the calling thread is woken for: a step of its own to run, a failure, or None when all is done.
        self._calls: queue.SimpleQueue[_Step | tuple[_Step, BaseException] | None] = queue.SimpleQueue()
        self._began: float | None = None

    def add(
        self,
        name: str,
        call: Callable[..., Any],
        *,
        after: Sequence[str] = (),
        needs: Sequence[str] = (),
        phase: str | None = None,
        here: bool = False,
    ) -> Startup:
        """Add a step: `call()` runs after the steps `after`; results of the steps `needs` are its arguments.

        `phase`: the stage that the step is told as. `here`: it runs in the thread that calls `run`, as what is not
        made for threads must. Returns this start-up. The steps that it waits for may be added later.
        """
        if name in self._steps:
            raise ValueError(f"there is a step {name!r} already; give each its own name")
        self._steps[name] = _Step(name, call, tuple(needs), {*after, *needs}, phase, here)
        return self

    @property
    def seconds(self) -> dict[str, float]:
        """How long each step took that has ended; their sum is what they would take one after the other."""
        ended = [step for step in self._steps.values() if step.began is not None and step.ended is not None]
        return {step.name: (step.ended or 0) - (step.began or 0) for step in ended}

    def run(self) -> dict[str, Any]:
        """Run all steps, once; return their results by name. Raises StartupError, from what the step raised."""
        self._check()
        self._began = monotonic()
        try:
            self._go_on()
            while (call := self._next()) is not None:
                if isinstance(call, _Step):
                    if not self.cancelled.is_set():  # else what failed comes next
                        self._run(call)
                else:
                    raise self._failed(*call) from call[1]
        except BaseException:
            self.cancelled.set()
            raise
        return {step.name: step.result for step in self._steps.values()}

    def _check(self) -> None:
        if self._began is not None:
            raise StartupError("this start-up has run; make a new one for another")
        for step in self._steps.values():
            if missing := sorted(step.waits - set(self._steps)):
                raise StartupError(f"step {step.name} waits for {', '.join(missing)}, which nobody added", step.name)
        try:
            TopologicalSorter({step.name: step.waits for step in self._steps.values()}).prepare()
        except CycleError as error:
            raise StartupError(f"steps wait for each other: {' after '.join(error.args[1])}; cut one") from None

    def _next(self) -> _Step | tuple[_Step, BaseException] | None:
        left = None
        if self.deadline_s is not None and self._began is not None:
            left = max(self._began + self.deadline_s - monotonic(), 0.0)
        try:
            return self._calls.get(timeout=left)
        except queue.Empty:
            raise self._late() from None

    def _go_on(self) -> None:
        """Start what is ready. Called by whoever has ended a step."""
        with self._lock:
            if self.cancelled.is_set():
                return
            if all(step.done for step in self._steps.values()):
                self._calls.put(None)
            for step in self._steps.values():
                if step.began is None and all(self._steps[name].done for name in step.waits):
                    step.began = monotonic()
                    if step.here:
                        self._calls.put(step)
                        continue
                    # The settings of torch and the phase around `run` belong to a context: each step gets a copy.
                    context = contextvars.copy_context()
                    step.thread = threading.Thread(
                        target=context.run, args=(self._run, step), name=f"startup-{step.name}", daemon=True
                    )
                    step.thread.start()

    def _run(self, step: _Step) -> None:
        try:
            if step.here:
                step.began = monotonic()
                step.thread = threading.current_thread()
            with telling.phase(self._recorder, step.phase):
                step.result = step.call(*(self._steps[name].result for name in step.needs))
        except BaseException as error:
            if step.here and isinstance(error, KeyboardInterrupt):
                raise
            self.cancelled.set()
            step.ended = monotonic()
            self._calls.put((step, error))
        else:
            step.ended, step.done = monotonic(), True
            self._go_on()

    def _failed(self, step: _Step, error: BaseException) -> StartupError:
        return StartupError(
            f"start-up: step {step.name} failed: {type(error).__name__}: {error}{self._rest(failed=True)}", step.name
        )

    def _late(self) -> StartupError:
        now = monotonic()
        running = [step for step in self._steps.values() if step.running]
        told = [f"{step.name} has run for {now - (step.began or now):.1f} s{_place(step)}" for step in running]
        hangs = ", ".join(told) or "nothing is running"
        text = f"start-up did not end within {self.deadline_s:g} s: {hangs}{self._rest(failed=False)}"
        return StartupError(text, running[0].name if running else None)

    def _rest(self, *, failed: bool) -> str:
        idle = [step.name for step in self._steps.values() if step.began is None]
        busy = [step.name for step in self._steps.values() if step.running]
        told = {"still running": busy if failed else [], "never begun": idle}
        return "".join(f"; {what}: {', '.join(names)}" for what, names in told.items() if names)


def _place(step: _Step) -> str:
    """Where in its code a step is right now."""
    ident = step.thread.ident if step.thread is not None else None
    frame = sys._current_frames().get(ident) if ident is not None else None
    return f" (in {frame.f_code.co_qualname}, {frame.f_code.co_filename}:{frame.f_lineno})" if frame else ""
