"""What is seen of a cluster, folded to events: which object speaks for which job, and in which order.

Kinds are listed side by side, so that anything may come before what it belongs to: a pod before its job, a quota before
the job that it is for, the end of a job before the pods that say when it began. Each of them waits for the other, for
half a minute at the longest.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ettwatch_sources.kubernetes.common import Object, Seen, Unknown, part, place_of, time_of, uid_of
from ettwatch_sources.kubernetes.objects import OWNERS, child_facts, parent_of, workload_facts
from ettwatch_sources.kubernetes.pods import owner_of, pod_facts, slim
from ettwatch_sources.kubernetes.rayjob import cluster_of, run_of
from ettwatch_sources.kubernetes.reflector import Change
from ettwatch_sources.kubernetes.resources import kinds_of, pods_of
from ettwatch_sources.told import Told
from ettwatch_sources.watch.facts import Fact, Finished, Gone, Started, Submitted
from ettwatch_sources.watch.tracker import Tracker

HOLD_US: Final = 30_000_000
"""How long one thing waits for another, by the watcher's clock."""

_MOST: Final = 10_000
_PODS: Final = "Pod/"
Name = tuple[str, str, str]
"""Kind, namespace and name."""


class _Part(NamedTuple):
    """What an object says of the job that it belongs to, whose own object is awaited."""

    since: int
    kind: str
    of: str
    """Kind of the job."""
    facts: list[Fact]


class Folder:
    """Turns changes of objects into events: pure, told the time.

    Args:
        cluster: The cluster's name.
        place: What stands as the place of events.
        kinds: What is watched, by the names of the command line.
    """

    def __init__(self, cluster: str | None, place: str, kinds: Sequence[str]) -> None:
        self._cluster = cluster
        self._kinds = kinds_of(kinds)
        self._absent: set[str] = set()
        self._listed: set[str] = set()
        self.tracker = Tracker(place)
        self.unknown = Unknown()
        self._uids: dict[Name, str] = {}
        self._names: dict[str, set[Name]] = {}
        self._runs: dict[Name, int] = {}
        self._held: dict[str, list[_Part]] = {}
        self._orphans: dict[Name, list[tuple[int, Object]]] = {}
        self._late: dict[str, tuple[int, str, list[Fact]]] = {}
        self._stands_in: dict[str, str] = {}
        """Uid of a job by that of the JobSet that runs for it."""
        self._speakers: dict[str, str] = {}
        """Kind of the object that speaks for a job, by the job's uid."""
        self._seen: set[str] = set()

    def change(self, change: Change, now: int) -> Iterator[Told]:
        """Yield the events of a change."""
        item, kind = change.item, change.kind
        self._absent.discard(kind)
        if kind.startswith(_PODS):
            if not change.deleted:
                yield from self._pod(item, now)
            return
        if kind == "Job" and part(item, "metadata", "ownerReferences"):
            return  # a part of a JobSet, a CronJob or the like, which speaks for it
        if kind == "Workload" or (kind == "JobSet" and parent_of(item).get("kind") == "TrainJob"):
            yield from self._part(kind, item, change.deleted, now)
            return
        uid = uid_of(item)
        if change.deleted:
            yield from self._gone(uid, item, now)
        else:
            yield from self._job(kind, uid, item, now)

    def synced(self, kind: str, now: int) -> Iterator[Told]:
        """A kind was listed: yield the ends of its jobs that were known before and are in no list, and what waited."""
        self._absent.discard(kind)
        self._listed.add(kind)
        yield from self._begun(now)
        for uid in [uid for uid, known in self._speakers.items() if known == kind and uid not in self._seen]:
            yield from self._gone(uid, {}, now)

    def absent(self, kind: str, now: int) -> Iterator[Told]:
        """A kind is not there or may not be seen: yield what waited for it."""
        self._absent.add(kind)
        for uid in [uid for uid, parts in self._held.items() if parts[0].of == kind]:
            yield from self._release(uid, now)
        yield from self._begun(now)

    def tick(self, now: int) -> Iterator[Told]:
        """Yield what has waited long enough."""
        yield from self._release_all(now - HOLD_US, now)
        yield from self.tracker.tick(now)

    def flush(self, now: int) -> Iterator[Told]:
        """Yield everything that waits."""
        yield from self._release_all(now, now)
        yield from self.tracker.flush()

    def dump(self) -> dict[str, Any]:
        """Return the state as plain values."""
        return {"jobs": self.tracker.dump(), "kinds": dict(self._speakers)}

    def load(self, state: dict[str, Any]) -> None:
        """Take what `dump` gave. Raises TypeError where it is something else."""
        self.tracker.load(state.get("jobs", {}))
        self._speakers.update({str(uid): str(kind) for uid, kind in state.get("kinds", {}).items()})

    def _watched(self, kind: str) -> bool:
        return kind in self._kinds and kind not in self._absent

    def _knows_begins(self, kind: str) -> bool:
        """Whether all was listed that says when an attempt of such a job began: quota, pods, and whose they are."""
        wanted = {_PODS + pods_of(kind), *(self._kinds & {"Workload", pods_of(kind)})}
        return wanted - {kind} <= self._listed | self._absent

    def _job(self, kind: str, uid: str, item: Object, now: int) -> Iterator[Told]:
        """The object of a job."""
        facts = list(OWNERS[kind](item, Seen(self._cluster, now), self.unknown))
        if not facts:
            return
        self._speakers[uid] = kind
        self._seen.add(uid)
        yield from self._apply(facts[:1], now)
        for waiting in self._held.pop(uid, []):
            yield from self._of_part(waiting.kind, uid, waiting.facts, now)
        namespace, own = place_of(item)
        name = cluster_of(item) if kind == "RayJob" else own
        if name:
            if kind == "RayJob":
                self._runs[kind, namespace, name] = run_of(item)
            self._name((kind, namespace, name), uid)
            yield from self._placed(now, uid)
        self._late[uid] = (self._late[uid][0] if uid in self._late else now, kind, facts[1:])
        if self._knows_begins(kind):
            yield from self._say(uid, now)

    def _say(self, uid: str, now: int) -> Iterator[Told]:
        """Apply what the object of a job says, now that what tells of begins is known as far as it will be."""
        _, kind, facts = self._late.pop(uid)
        if kind == "Job" and _PODS + kind in self._listed and not any(isinstance(fact, Finished) for fact in facts):
            # It counts itself as started when its pods are made: they may wait for hardware still.
            facts = [fact for fact in facts if not isinstance(fact, Started)]
        yield from self._apply(facts, now)

    def _part(self, kind: str, item: Object, deleted: bool, now: int) -> Iterator[Told]:
        """An object that belongs to a job: it says more of that, and stands for it where that cannot be seen."""
        parent = parent_of(item)
        uid, of = str(parent.get("uid") or uid_of(item)), str(parent.get("kind") or "")
        uid = self._stands_in.get(uid, uid)
        if deleted:
            if self._speakers.get(uid) == kind:
                yield from self._gone(uid, item, now)
            return
        words = child_facts if kind == "JobSet" else workload_facts
        facts = [fact._replace(key=uid) for fact in words(item, Seen(self._cluster, now), self.unknown)]
        if not facts:
            return
        if kind == "JobSet":
            self._stands_in[uid_of(item)] = uid
            for waiting in self._held.pop(uid_of(item), []):  # a quota may be for the part
                again = [fact._replace(key=uid) for fact in waiting.facts]
                self._held.setdefault(uid, []).append(waiting._replace(of=of, facts=again))
            self._name((kind, *place_of(item)), uid)
        if uid not in self._speakers and self._watched(of):
            if len(self._held) < _MOST:
                before = self._held.setdefault(uid, [])
                before[:] = [one for one in before if one.kind != kind]
                before.append(_Part(now, kind, of, facts))
            return
        self._speakers.setdefault(uid, kind)
        self._seen.add(uid)
        yield from self._of_part(kind, uid, facts, now)
        yield from self._release(uid, now)
        yield from self._placed(now, uid)

    def _of_part(self, kind: str, uid: str, facts: list[Fact], now: int) -> Iterator[Told]:
        """Apply what a part says: all of it where it stands for the job, else what the job itself does not say."""
        if self._speakers.get(uid) == kind:
            yield from self._apply(facts, now)
            return
        for fact in facts:
            if not isinstance(fact, Submitted):
                if kind == "Workload" or self._speakers.get(uid) != "TrainJob":
                    yield from self._apply([fact], now)
            elif fact.gpus:
                self.tracker.size(uid, fact.gpus)

    def _pod(self, pod: Object, now: int) -> Iterator[Told]:
        owner = owner_of(pod)
        if owner is None:
            return
        uid = self._uid_of(owner)
        if uid is not None and self.tracker.knows(uid) and self._knows_begins(owner[0]):
            yield from self._of_pods([pod], owner, uid, now)
        elif owner in self._orphans or len(self._orphans) < _MOST:
            self._orphans.setdefault(owner, []).append((now, slim(pod)))

    def _of_pods(self, pods: Iterable[Object], owner: Name, uid: str, now: int) -> Iterator[Told]:
        """Apply what pods say in the order of time: the first that got a node began the attempt."""
        facts = [fact for pod in pods for fact in pod_facts(pod, uid, self.unknown, self._runs.get(owner))]
        yield from self._apply(sorted(facts, key=lambda fact: fact.ts), now)

    def _uid_of(self, owner: Name, patient: bool = True) -> str | None:
        """Return the uid of the job of pods. A TrainJob's go by its JobSet, unless that cannot be seen."""
        uid = self._uids.get(owner)
        if uid is None and owner[0] == "JobSet" and not (patient and self._watched("JobSet")):
            uid = self._uids.get(("TrainJob", *owner[1:]))
        return uid

    def _name(self, name: Name, uid: str) -> None:
        """Pods that give this name are those of this job."""
        self._uids[name] = uid
        self._names.setdefault(uid, set()).add(name)

    def _placed(self, now: int, uid: str | None = None, patient: bool = True) -> Iterator[Told]:
        """Apply pods that waited and whose job is known by now: of one job, or of all."""
        names = self._orphans if uid is None else self._names.get(uid, ())
        for name in [(pods_of(kind), namespace, name) for kind, namespace, name in names]:
            found = self._uid_of(name, patient)
            ready = self._knows_begins(name[0]) or not patient
            if found is not None and ready and self.tracker.knows(found) and name in self._orphans:
                yield from self._of_pods([pod for _, pod in self._orphans.pop(name)], name, found, now)

    def _begun(self, now: int) -> Iterator[Told]:
        """Apply what waited for words of when attempts began."""
        yield from self._placed(now)
        for uid in [uid for uid, (_, kind, _) in self._late.items() if self._knows_begins(kind)]:
            yield from self._say(uid, now)

    def _release(self, uid: str, now: int) -> Iterator[Told]:
        """Let the parts of a job speak, whose own object did not come."""
        for waiting in self._held.pop(uid, []):
            self._speakers.setdefault(uid, waiting.kind)
            self._seen.add(uid)
            yield from self._of_part(waiting.kind, uid, waiting.facts, now)

    def _release_all(self, since: int, now: int) -> Iterator[Told]:
        for uid in [uid for uid, parts in self._held.items() if parts[0].since <= since]:
            yield from self._release(uid, now)
        if any(pods[0][0] <= since for pods in self._orphans.values()):
            old = {name: self._orphans.pop(name) for name in list(self._orphans) if self._orphans[name][0][0] <= since}
            for name, pods in old.items():
                job = self._uid_of(name, patient=False)
                if job is not None and self.tracker.knows(job):
                    yield from self._of_pods([pod for _, pod in pods], name, job, now)
        for uid in [uid for uid, (began, _, _) in self._late.items() if began <= since]:
            yield from self._say(uid, now)

    def _gone(self, uid: str, item: Object, now: int) -> Iterator[Told]:
        if uid in self._late:
            yield from self._say(uid, now)
        yield from self.tracker.apply(Gone(uid, time_of(part(item, "metadata", "deletionTimestamp")) or now), now)
        # A uid never comes again.
        self.tracker.forget(uid)
        self._speakers.pop(uid, None)
        self._seen.discard(uid)
        self._stands_in.pop(uid_of(item), None)
        for name in self._names.pop(uid, ()):
            if self._uids.get(name) == uid:
                del self._uids[name]
                self._runs.pop(name, None)

    def _apply(self, facts: Iterable[Fact], now: int) -> Iterator[Told]:
        for fact in facts:
            yield from self.tracker.apply(fact, now)
