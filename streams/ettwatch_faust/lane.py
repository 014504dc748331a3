"""One partition's jobs: folds their events, says what to publish and to write into the table. Pure, told the time."""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from ettwatch_core import CLOSED, JobState, Publication, Verdict, apply, next_look, settle, snapshot
from ettwatch_faust.again import Again
from ettwatch_faust.live import EXPIRED, QUIET, STATUSES, Answer, Entry, Live, Policy
from ettwatch_faust.shelf import Head, Shelf, StoredPart, Write, read_head, split_key
from ettwatch_schemas import Event

__all__ = ["Lane"]

_SECOND: Final = 1_000_000


class Lane:
    """The jobs of one partition.

    Args:
        part: Where their states lie.
        policy: How they are treated.
        generation: Of the consumer group: rises with every change of owners.
    """

    def __init__(self, part: StoredPart, policy: Policy, generation: int) -> None:
        self._part = part
        self._policy = policy
        self._epoch = generation
        self._entries: dict[str, Entry] = {}
        self._live: dict[str, Live] = {}  # the least recently written first
        self._changed: dict[str, Live] = {}  # since the last write
        self._waiting: dict[str, Live] = {}  # for their publication
        self._writes: list[Write] = []
        self._due: list[tuple[int, str]] = []
        self._caught_up = False
        self._again = Again(policy.again_us)
        self._statuses: Counter[str] = Counter()
        self._scan()

    def _scan(self) -> None:
        """Find the jobs. What stale owners left is removed with the next write."""
        found: dict[bytes, tuple[int, int, Head]] = {}
        stale: list[tuple[bytes, bytes, int]] = []
        for key, value in self._part.items():
            named = split_key(key)
            if named is None:
                continue
            job, epoch, _ = named
            head = read_head(value)
            # Generations begin anew when a group was gone for long: what lies here counts as well.
            self._epoch = max(self._epoch, epoch + 1)
            stale.append((key, job, epoch))
            if job not in found or (epoch, head.number) > found[job][:2]:
                found[job] = epoch, head.number, head
        for job, (epoch, _, head) in found.items():
            name = job.decode()
            self._entries[name] = Entry(epoch, False, head.offset, head.due, head.arrived, head.status)
            self._statuses[STATUSES[head.status]] += 1
            if head.due:
                self._due.append((head.due, name))
        heapq.heapify(self._due)
        self._writes = [(key, None) for key, job, epoch in stale if epoch != found[job][0]]

    # Events

    def knows(self, job: str) -> bool:
        """Whether something is known of the job."""
        return job in self._entries

    def take(self, job: str, events: Sequence[Event], offset: int, now_us: int) -> list[Answer] | None:
        """Fold the events of one record.

        Args:
            job: Their job.
            events: In their order.
            offset: Of the record.
            now_us: The clock.

        Returns:
            What became of each; None if the state already holds the record.

        Raises:
            StateError: The state of the job cannot be read.
        """
        known = self._entries.get(job)
        if known is not None and offset < known.offset:
            return None
        live = self._live.get(job) or self._wake(job)
        if live is None:
            return [Answer.EXPIRED] * len(events)
        live.entry.offset = offset + 1
        answers = []
        rules = self._policy.rules
        changed = False
        for event in events:
            verdict = apply(live.state, event, rules)
            if verdict is Verdict.ACCEPTED:
                live.shelf.accepted()
            elif verdict is Verdict.CONFLICT:
                live.shelf.rewritten()
            else:
                answers.append(Answer.LATE if verdict is Verdict.LATE else Answer.DUPLICATE)
                continue
            changed = True
            answers.append(Answer.TAKEN)
            if event.kind not in QUIET:
                live.urgent = True
        if changed:
            live.entry.arrived_us = now_us
            self._changed[job] = live
            if job not in self._waiting:
                self._waiting[job] = live
                live.waits_since_us = now_us
            self._settle(live)
        return answers

    def _wake(self, job: str) -> Live | None:
        entry = self._entries.get(job)
        if entry is None:
            entry = self._entries[job] = Entry(0, True, 0, 0, 0, 0)
            self._statuses["new"] += 1
            live = Live(entry, Shelf(job.encode()), JobState(job))
        elif entry.status == EXPIRED:
            return None
        else:
            shelf = Shelf(job.encode(), old=entry.epoch)
            live = Live(entry, shelf, shelf.load(self._part, mine=entry.mine))
        self._live[job] = live
        return live

    def _settle(self, live: Live) -> None:
        # After every record, and at no other time: so what counts as late is the same for whoever reads it again.
        settled = settle(live.state, self._policy.rules)
        if settled is not None:
            live.settled.append(settled)
            live.shelf.rewritten()
            self._changed[live.state.job] = live

    # Publishing

    def publish(
        self, now_us: int, *, behind: bool, go_on: Callable[[], bool], quietly: Callable[[], bool] | None = None
    ) -> list[Publication]:
        """Return what has to be told of jobs that had events.

        Args:
            now_us: The clock.
            behind: More events of this partition wait to be read: the jobs' clock is their newest event, so that
                nobody is called silent for what is only unread.
            go_on: Asked before each job; what is left over is told next time.
            quietly: Asked instead before a job that only made progress.
        """
        self._catch_up(now_us, behind=behind)
        out: list[Publication] = []
        ready = [(live.rank, job) for job, live in self._waiting.items() if now_us >= self._ready_us(live, behind)]
        for _, job in sorted(ready, key=lambda each: each[0]):
            live = self._waiting[job]
            asked = go_on if live.urgent or quietly is None else quietly
            if not live.settled and not asked():
                break
            del self._waiting[job]
            out.append(self._publish(live, now_us, None if behind else now_us))
        return out

    def _ready_us(self, live: Live, behind: bool) -> int:
        policy = self._policy
        if live.settled:
            return 0
        if behind:
            return max(live.published_us, live.waits_since_us) + policy.behind_us
        return 0 if live.urgent else live.published_us + policy.publish_us

    def tick(self, now_us: int, go_on: Callable[[], bool]) -> list[Publication]:
        """Return what time alone changed; drop jobs that are final. Not to be called while events wait to be read.

        Args:
            now_us: The clock.
            go_on: Asked before each job; what is left over stays due.
        """
        self._catch_up(now_us, behind=False)
        self._tell_again(now_us)
        out: list[Publication] = []
        while self._due and self._due[0][0] <= now_us and go_on():
            due_us, job = heapq.heappop(self._due)
            entry = self._entries.get(job)
            if entry is None or entry.due_us != due_us:
                continue  # was put off
            if entry.status == EXPIRED:
                self._forget(job, entry)
                continue
            live = self._live.get(job) or self._wake(job)
            assert live is not None
            self._waiting.pop(job, None)
            if final := STATUSES[entry.status] in CLOSED:
                live.published.start_over()  # its last word is whole: it also corrects what stale owners told late
            out.append(self._publish(live, now_us, now_us))
            if final and entry.due_us and entry.due_us <= now_us:
                self._drop(job, live, now_us)
        return out

    def _catch_up(self, now_us: int, *, behind: bool) -> None:
        """Have all told anew once everything is read of which an owner before may have told.

        What is told while events are read again loses against what was told of later ones.
        """
        self._again.begin(now_us)
        if not behind and not self._caught_up:
            self._caught_up = True
            for live in self._live.values():
                live.published.start_over()

    def _tell_again(self, now_us: int) -> None:
        for job in self._again.due(now_us):
            if (live := self._live.get(job)) is not None:
                live.published.start_over()
            entry = self._entries.get(job)
            if entry is not None and STATUSES[entry.status] in CLOSED:
                self._schedule(job, entry, now_us)  # all others have a time for it anyway

    def _publish(self, live: Live, now_us: int, clock_us: int | None) -> Publication:
        # Whole seconds, as versions have them: so of two summaries of equal version both say the same.
        clock = None if clock_us is None else clock_us // _SECOND * _SECOND
        # Keeping a drawing pays from the next publication on: not for one that is told of once, as after a backlog.
        keep = clock is not None and live.published_us > 0
        snap = snapshot(live.state, self._policy.rules, clock, keep=keep)
        for settled in live.settled:
            live.published.settled(settled)
        live.settled.clear()
        publication = live.published.publication(snap)
        live.published_us, live.urgent = now_us, False
        self._again.told(live.state.job)
        entry = live.entry
        self._set_status(entry, STATUSES.index(snap.summary.status))
        # By its own clock it stands as its newest event left it: the worker's clock has its say when all is read.
        due_us = now_us
        if clock_us is not None:
            due_us = next_look(snap, live.state.newest, entry.arrived_us, now_us, self._policy.pace) or 0
        self._schedule(live.state.job, entry, due_us)
        return publication

    def _schedule(self, job: str, entry: Entry, due_us: int) -> None:
        if entry.due_us != due_us:
            entry.due_us = due_us
            if due_us:
                heapq.heappush(self._due, (due_us, job))

    def _set_status(self, entry: Entry, status: int) -> None:
        self._statuses[STATUSES[entry.status]] -= 1
        self._statuses[STATUSES[status]] += 1
        entry.status = status

    def _drop(self, job: str, live: Live, now_us: int) -> None:
        entry = live.entry
        self._set_status(entry, EXPIRED)
        self._schedule(job, entry, now_us + self._policy.forget_us)
        self._writes += live.shelf.close(live.head, self._epoch, self._part)
        entry.epoch, entry.mine = live.shelf.epoch, True
        for where in (self._live, self._changed, self._waiting):
            where.pop(job, None)

    def _forget(self, job: str, entry: Entry) -> None:
        self._writes += Shelf(job.encode(), old=entry.epoch).forget(self._part)
        self._statuses["expired"] -= 1
        del self._entries[job]

    # The table

    def writes(self, now_us: int) -> list[Write]:
        """Return what has to be written so that the table holds everything up to here.

        Args:
            now_us: The clock.
        """
        out, self._writes = self._writes, []
        for job, live in self._changed.items():
            head = live.head
            if job in self._waiting:
                head = head._replace(due=now_us)  # whoever takes it over has to publish it
            out += live.shelf.write(live.state, head, self._epoch, self._part)
            live.entry.epoch, live.entry.mine = live.shelf.epoch, True
            self._live[job] = self._live.pop(job)
        self._changed.clear()
        return out

    @property
    def weight(self) -> int:
        """About how many tuples the states in memory hold."""
        return sum(live.weight for live in self._live.values())

    def evict(self, weight: int) -> int:
        """Let go of what is not in use, drawings first, about so many tuples; return how many. After a flush only."""
        freed = 0
        idle = [job for job in self._live if job not in self._changed and job not in self._waiting]
        for job in idle:
            if freed >= weight:
                return freed
            live = self._live[job]
            freed += live.drawn
            live.state.draft = None
        for job in idle:
            if freed >= weight:
                break
            if self._live[job].entry.epoch:
                freed += self._live.pop(job).weight
        return freed

    @property
    def in_memory(self) -> int:
        """How many states are in memory."""
        return len(self._live)

    @property
    def jobs(self) -> Counter[str]:
        """How many jobs there are, by status."""
        return self._statuses
