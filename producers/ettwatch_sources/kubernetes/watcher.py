"""The watcher of a Kubernetes cluster: one process, a thread for each kind of objects, one place that tells events."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ettwatch_sources.kubernetes.api import Api, Unreachable
from ettwatch_sources.kubernetes.common import Object, Unknown, part, place_of, time_of, uid_of
from ettwatch_sources.kubernetes.objects import OWNERS, workload_facts
from ettwatch_sources.kubernetes.pods import owner_of, pod_facts
from ettwatch_sources.kubernetes.reflector import Change, Notice, Reflector, Synced
from ettwatch_sources.kubernetes.resources import Resource, resources
from ettwatch_sources.told import Told
from ettwatch_sources.watch.facts import Fact, Gone
from ettwatch_sources.watch.tracker import Tracker

HOLD_US: Final = 30_000_000
"""How long facts wait for the object that they are about, by the watcher's clock."""

_QUEUE: Final = 1_000


class Folder:
    """Turns changes of objects into events: pure, told the time.

    Args:
        cluster: The cluster's name.
        place: What stands as the place of events.
        kinds: The kinds of jobs that are watched.
    """

    def __init__(self, cluster: str | None, place: str, kinds: Sequence[str]) -> None:
        self._cluster = cluster
        self._kinds = frozenset(kinds)
        self.tracker = Tracker(place)
        self.unknown = Unknown()
        self._uids: dict[tuple[str, str, str], str] = {}
        self._held: dict[str, list[tuple[int, Fact]]] = {}
        self._orphans: dict[tuple[str, str, str], list[tuple[int, Object]]] = {}
        self._owners: dict[str, str] = {}
        self._seen: set[str] = set()

    def change(self, change: Change, now: int) -> Iterator[Told]:
        """Yield the events of a change."""
        item, kind = change.item, change.kind
        if kind.startswith("Pod/"):
            owner = owner_of(item)
            if owner is None or change.deleted:
                return
            key = self._uids.get(owner)
            if key is not None:
                yield from self._apply(pod_facts(item, key, self.unknown), key, now)
            elif len(self._orphans) < 10_000:
                # Kinds are listed side by side: a pod may come before its job.
                self._orphans.setdefault(owner, []).append((now, item))
            return
        if kind == "Job" and part(item, "metadata", "ownerReferences"):
            return  # a part of a JobSet, a CronJob or the like, which speaks for it
        uid = uid_of(item)
        if kind == "Workload":
            facts = list(workload_facts(item, self._cluster, self.unknown)) if not change.deleted else []
            if facts:
                yield from self._apply(iter(facts), facts[0].key, now)
            return
        if change.deleted:
            gone = time_of(part(item, "metadata", "deletionTimestamp")) or now
            yield from self._gone(uid, gone, now)
            return
        owner = (kind, *place_of(item))
        self._uids[owner] = uid
        self._owners[uid] = kind
        self._seen.add(uid)
        yield from self._apply(OWNERS[kind](item, self._cluster, self.unknown), uid, now)
        for _, fact in self._held.pop(uid, []):
            yield from self.tracker.apply(fact, now)
        for _, pod in self._orphans.pop(owner, []):
            yield from self._apply(pod_facts(pod, uid, self.unknown), uid, now)

    def synced(self, kind: str, now: int) -> Iterator[Told]:
        """Yield the ends of jobs of a kind that were known before and are in no list: they went unseen."""
        for uid in [uid for uid, known in self._owners.items() if known == kind and uid not in self._seen]:
            yield from self._gone(uid, now, now)

    def dump(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {"jobs": self.tracker.dump(), "kinds": dict(self._owners)}

    def load(self, state: dict[str, Any]) -> None:
        """Take what `dump` gave. Raises TypeError where it is something else."""
        self.tracker.load(state.get("jobs", {}))
        self._owners.update({str(uid): str(kind) for uid, kind in state.get("kinds", {}).items()})

    def _gone(self, uid: str, ts: int, now: int) -> Iterator[Told]:
        yield from self.tracker.apply(Gone(uid, ts), now)
        # A uid never comes again.
        self.tracker.forget(uid)
        self._owners.pop(uid, None)
        self._seen.discard(uid)

    def tick(self, now: int) -> Iterator[Told]:
        """Yield what has waited long enough."""
        for key in [key for key, facts in self._held.items() if facts[0][0] + HOLD_US <= now]:
            del self._held[key]
            self.tracker.unplaced += 1
        for owner in [owner for owner, pods in self._orphans.items() if pods[0][0] + HOLD_US <= now]:
            del self._orphans[owner]
        yield from self.tracker.tick(now)

    def _apply(self, facts: Iterator[Fact], key: str, now: int) -> Iterator[Told]:
        for fact in facts:
            if fact.key != key or self.tracker.knows(key) or type(fact).__name__ == "Submitted":
                yield from self.tracker.apply(fact, now)
            elif len(self._held) < 10_000:
                # A quota may be told before the job that it is for.
                self._held.setdefault(key, []).append((now, fact))


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
                    told += list(self._folder.tracker.flush())
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
                if message.kind not in self.synced:
                    told += self._folder.synced(message.kind, clock())
                self.synced.add(message.kind)
            else:
                if message.absent:
                    absent.add(message.kind)
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
