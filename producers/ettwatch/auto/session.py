"""Whether this process trains, and if so its recorder: begun when there is evidence, told of what came before."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any, Final

from ettwatch import default
from ettwatch.auto.recorder import AutoRecorder
from ettwatch.clock import Clock
from ettwatch.identity import BadIdentity, Given, resolve
from ettwatch.log import trouble, warn
from ettwatch.loop import Loop
from ettwatch.past import tell_past
from ettwatch.recorder import Recorder
from ettwatch.settings import read
from ettwatch.spans import Phase, Span

PID: Final = "ETTWATCH_AUTO_PID"
"""Set by a process that is recorded to its pid: those that it starts are its helpers, not ranks."""


class Session:
    """What the hooks share. Every method may be called from the trainer's code and raises nothing of its own."""

    def __init__(self, began_ns: int) -> None:
        self.recorder: Recorder | None = None
        self.began_ns = began_ns
        self.torch_ns = 0
        """When the import of torch was complete; monotonic, 0: not yet."""
        self.loaded = False
        """A checkpoint was loaded before the loop."""
        self.batch_ns = 0
        """When the last batch before the loop came."""
        self.compiled_ns = 0
        """When the last compilation before the loop ended."""
        self._closed = threading.local()
        self._off = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """Be silent in a child, which is a helper (of a DataLoader, say), until it joins a group of ranks itself."""
        self.recorder = None
        self._off = True
        self._closed = threading.local()

    def evidence(self, joins: bool = False, rank: int | None = None) -> Recorder | None:
        """This process does what only a trainer does: return its recorder, if it is to be recorded.

        `joins`: it joins a group of ranks, which helpers do not.
        """
        recorder = self.recorder
        if recorder is not None:
            return recorder if recorder.enabled else None
        if not joins and (self._off or os.environ.get(PID, str(os.getpid())) != str(os.getpid())):
            return None
        try:
            self.recorder = self._begin(rank)
        except Exception as error:
            trouble("instrumenting this process", error)
            self._off = True
        return self.recorder

    def _begin(self, rank: int | None) -> Recorder | None:
        existing = default.get()
        if existing.enabled:
            os.environ[PID] = str(os.getpid())
            self._tell_of_torch(existing)
            return existing
        settings = read(os.environ)
        try:
            identity = resolve(Given(rank=rank), os.environ)
        except BadIdentity as error:
            warn("identity", f"{error}; nothing is recorded")
            self._off = True
            return None
        recorder = AutoRecorder(identity, settings, Clock.take_over(os.environ.get("ETTWATCH_CLOCK")))
        recorder._life.begin()
        default._default = recorder
        os.environ[PID] = str(os.getpid())
        self.recorder = recorder
        helpers: Any = sys.modules.get("multiprocessing.util")
        if helpers is not None and self._off:
            # A rank that was forked leaves by os._exit, after what is registered here and nowhere else.
            helpers.Finalize(None, recorder._life._at_exit, exitpriority=0)
        self._tell_of_torch(recorder)
        return recorder

    def torch_complete(self) -> None:
        """The import of torch is complete."""
        self.torch_ns = monotonic_ns()
        if self.recorder is not None:
            self._tell_of_torch(self.recorder)

    def _tell_of_torch(self, recorder: Recorder) -> None:
        if self.torch_ns:
            tell_past(recorder, "hardware_setup.binary_start", self.began_ns, self.torch_ns)
            # A mark: from here on what has no name is the trainer's start-up, not that of its binaries. It is told by
            # the component's own name, so that it is part of this rest and no stage beside it.
            tell_past(recorder, "trainer_init", self.torch_ns, self.torch_ns + 1000)

    @property
    def driven(self) -> AutoRecorder | None:
        """The recorder, if it is the hooks that tell of the loop."""
        recorder = self.recorder
        if isinstance(recorder, AutoRecorder) and not recorder.by_hand and recorder.enabled:
            return recorder
        return None

    @property
    def loop(self) -> Loop | None:
        """The loop of the recorder; None where nothing is recorded."""
        return self.recorder._loop if self.recorder is not None else None

    @contextmanager
    def inside(self) -> Iterator[bool]:
        """A block in which this thread's further hooked calls are part of the first; gives whether it is the first."""
        first = not getattr(self._closed, "now", False)
        self._closed.now = True
        try:
            yield first
        finally:
            if first:
                self._closed.now = False

    def span(self, name: str, background: bool = False) -> Span | None:
        """Begin a phase that its caller ends; None where nothing is recorded."""
        recorder = self.recorder
        if recorder is None or not recorder.enabled:
            return None
        return Phase(recorder._phase_outbox, name, background).begin()
