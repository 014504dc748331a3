"""The watcher of a Kubernetes cluster: one process, a thread for each kind of objects, one place that tells events."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from ettwatch_sources.kubernetes.api import Api, Unreachable
from ettwatch_sources.kubernetes.folder import Folder
from ettwatch_sources.kubernetes.reflector import Change, Notice, Reflector, Synced
from ettwatch_sources.kubernetes.resources import Resource, resources
from ettwatch_sources.told import Told

_QUEUE: Final = 1_000


class Watcher:
    """Follows a cluster until it is stopped.

    Args:
        api: The API server.
        kinds: What to watch, of WATCHED.
        namespace: Only this one; None: all.
        folder: Turns changes into events.
        say: Takes a line for people.
        watch_s: How long (seconds) one watch lasts.
    """

    def __init__(
        self,
        api: Api,
        kinds: Sequence[str],
        namespace: str | None,
        folder: Folder,
        say: Callable[[str], None] = lambda text: None,
        watch_s: int = 300,
    ) -> None:
        self._api = api
        self._resources = resources(kinds, namespace)
        self._folder = folder
        self._say = say
        self._watch_s = watch_s
        self._queue: queue.Queue[Change | Synced | Notice] = queue.Queue(_QUEUE)
        self._stop = threading.Event()
        self._said: dict[str, int] = {}
        self._once = False
        self.synced: set[str] = set()
        """Kinds of which everything was told at least once."""

    def stop(self) -> None:
        """End soon."""
        self._stop.set()

    def run(self, clock: Callable[[], int], hand_on: Callable[[list[Told], bool], None], once: bool = False) -> None:
        """Follow the cluster; `hand_on` gets the new events, and whether to save the state now.

        With `once` it ends when everything that there is has been told; then Unreachable is raised where the server
        cannot be reached.
        """
        threads = [threading.Thread(target=self._follow, args=(r,), daemon=True) for r in self._resources]
        self._once = once
        for thread in threads:
            thread.start()
        absent: set[str] = set()
        saved = time.monotonic()
        try:
            while not self._stop.is_set():
                told = self._next(clock, absent)
                due = time.monotonic() - saved >= 5.0
                done = once and len(self.synced | absent) == len(self._resources) and self._queue.empty()
                if done:
                    told += list(self._folder.flush(clock()))
                hand_on(told, due or done)
                if due:
                    saved = time.monotonic()
                if done:
                    break
        finally:
            self._stop.set()
            self._api.close()
            # Those that hang in a read end with the process.
            deadline = time.monotonic() + 1.0
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))

    def _next(self, clock: Callable[[], int], absent: set[str]) -> list[Told]:
        """Take what has come, up to a second's wait."""
        told: list[Told] = []
        try:
            message = self._queue.get(timeout=0.5)
        except queue.Empty:
            return list(self._folder.tick(clock()))
        for _ in range(_QUEUE):
            if isinstance(message, Change):
                told += self._folder.change(message, clock())
            elif isinstance(message, Synced):
                if message.kind not in self.synced or message.kind in absent:
                    absent.discard(message.kind)
                    told += self._folder.synced(message.kind, clock())
                self.synced.add(message.kind)
            else:
                if message.absent:
                    absent.add(message.kind)
                    told += self._folder.absent(message.kind, clock())
                elif self._once and message.kind not in self.synced:
                    raise Unreachable(message.text)
                self._tell(message)
            try:
                message = self._queue.get_nowait()
            except queue.Empty:
                break
        return told + list(self._folder.tick(clock()))

    def _tell(self, notice: Notice) -> None:
        """Say each thing once, and again after it was said a hundred times."""
        seen = self._said.get(notice.text, 0)
        self._said[notice.text] = seen + 1
        if seen % 100 == 0 and len(self._said) < 10_000:
            self._say(f"{notice.kind}: {notice.text}")

    def _follow(self, resource: Resource) -> None:
        reflector = Reflector(self._api, resource, self._sleep, self._watch_s)
        for message in reflector.run():
            while not self._stop.is_set():
                try:
                    self._queue.put(message, timeout=0.5)
                except queue.Full:
                    continue
                break
            if self._stop.is_set():
                return

    def _sleep(self, seconds: float) -> bool:
        return self._stop.wait(seconds)

    def dump(self) -> dict[str, Any]:
        """Return the state for the cursor file."""
        return self._folder.dump()
