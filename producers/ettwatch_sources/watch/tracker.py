"""Facts to events: which attempt a fact is about, and what was told of it already.

A scheduler's objects say how things are, not what happened, and the same thing is seen many times and from several
sides (a quota manager, a controller, pods). The tracker counts the attempts and tells each change once. Its state is
plain values, for the cursor file.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from ettwatch_schemas import AttemptEnded, AttemptStarted, BaseEvent, Cause, JobEnded, JobSubmitted, Trigger
from ettwatch_sources.told import Refused, Told, make
from ettwatch_sources.watch.facts import Ended, Fact, Finished, Gone, Hint, Started, Submitted

GRACE_US: Final = 10_000_000
"""How long an end without a cause waits for a hint, by the watcher's clock."""

_KEPT: Final = 100_000
_TRIGGERS: Final[dict[str, Trigger]] = {"preempted": "preemption", "failed": "failure"}


@dataclass(slots=True)
class _Job:
    """What is known of one job."""

    job: str
    attempt: int = -1
    started: int = 0
    open: bool = False
    ended: int = 0
    run: int | None = None
    finished: bool = False
    submitted: str = ""
    gpus: int | None = None
    hint_ts: int = 0
    hint: str = "unknown"
    hint_message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    due: int = 0
    """When an end that waits for a hint is told in any case; 0: none waits."""
    end: tuple[int, str, str, str] | None = None
    finish: tuple[int, str] | None = None
    last_outcome: str = ""


class Tracker:
    """Turns facts into events. It is told the time.

    Args:
        place: What stands as the place of its events, such as the address of the scheduler.
    """

    def __init__(self, place: str = "") -> None:
        self._jobs: OrderedDict[str, _Job] = OrderedDict()
        self._waiting: set[str] = set()
        self._place = place
        self.refused = 0
        """Facts that could not become events."""
        self.unplaced = 0
        """Facts about jobs that were never told to be there."""

    def knows(self, key: str) -> bool:
        """Tell whether a job was told to be there."""
        return key in self._jobs

    def forget(self, key: str) -> None:
        """Drop a job of which nothing more will be heard."""
        self._jobs.pop(key, None)
        self._waiting.discard(key)

    def size(self, key: str, gpus: int) -> None:
        """Take the GPUs of a job from elsewhere, where its scheduler does not say them."""
        job = self._jobs.get(key)
        if job is not None and job.gpus is None:
            job.gpus = gpus

    def apply(self, fact: Fact, now: int) -> Iterator[Told]:
        """Yield the events that a fact brings about."""
        if isinstance(fact, Submitted):
            yield from self._submitted(fact)
            return
        job = self._jobs.get(fact.key)
        if job is None:
            self.unplaced += 1
            return
        if isinstance(fact, Started):
            yield from self._started(fact, job)
        elif isinstance(fact, Hint):
            yield from self._hinted(fact, job, now)
        elif isinstance(fact, Ended):
            yield from self._ended(fact, job, now)
        elif isinstance(fact, Finished):
            yield from self._finished(fact, job, now)
        elif not job.finished:
            yield from self._gone(fact, job, now)

    def tick(self, now: int) -> Iterator[Told]:
        """Yield the ends that have waited long enough for a hint."""
        for key in [key for key in self._waiting if self._jobs[key].due <= now]:
            yield from self._close(key, self._jobs[key])

    def flush(self) -> Iterator[Told]:
        """Yield the ends that still wait for a hint."""
        for key in list(self._waiting):
            yield from self._close(key, self._jobs[key])

    def dump(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {key: asdict(job) for key, job in self._jobs.items()}

    def load(self, told: dict[str, Any]) -> None:
        """Take what `dump` gave. Raises TypeError where it is something else."""
        for key, value in told.items():
            fields = dict(value)
            for name in ("end", "finish"):
                fields[name] = tuple(fields[name]) if fields.get(name) else None
            self._jobs[str(key)] = _Job(**fields)
            if self._jobs[str(key)].due:
                self._waiting.add(str(key))

    def _tell(self, kind: type[BaseEvent], job: _Job, ts: int, **fields: Any) -> Iterator[Told]:
        try:
            event = make(kind, job=job.job, ts=ts, source="scheduler", **fields)
        except Refused:
            self.refused += 1
            return
        yield Told(event, self._place)  # type: ignore[arg-type]

    def _submitted(self, fact: Submitted) -> Iterator[Told]:
        job = self._jobs.get(fact.key)
        if job is None:
            job = self._jobs[fact.key] = _Job(fact.job)
            while len(self._jobs) > _KEPT:
                old, _ = self._jobs.popitem(last=False)
                self._waiting.discard(old)
        self._jobs.move_to_end(fact.key)
        if fact.gpus is not None:
            job.gpus = fact.gpus
        said = repr(fact[2:])
        if job.submitted == said:
            return
        job.submitted = said
        yield from self._tell(
            JobSubmitted,
            job,
            fact.ts,
            eligible_ts=fact.eligible,
            team=fact.team,
            model=fact.model,
            cluster=fact.cluster,
            gpus=fact.gpus,
            labels=dict(fact.labels) or None,
        )

    def _started(self, fact: Started, job: _Job) -> Iterator[Told]:
        again = fact.run is not None and job.run is not None and fact.run > job.run
        if again and job.open and fact.ts > job.started:
            # It was started anew before its end was heard of: it ended when it last was known to fail, else now.
            ended = job.hint_ts if job.started <= job.hint_ts <= fact.ts else fact.ts
            if job.end is None:
                job.end = (ended, "failed", "unknown", "")
            yield from self._close(fact.key, job)
        if fact.run is not None:
            job.run = fact.run if job.run is None else max(job.run, fact.run)
        if job.end is not None and fact.ts >= job.end[0]:
            # It is over and starts again: the end need not wait for a hint any longer.
            yield from self._close(fact.key, job)
        if job.open or job.finished or fact.ts < job.ended or (job.attempt >= 0 and fact.ts <= job.started):
            return
        first = job.attempt < 0
        job.attempt = (fact.run or 0) if first else job.attempt + 1
        job.started, job.open = fact.ts, True
        job.hint, job.hint_message, job.hint_ts, job.exit_code, job.signal = "unknown", "", 0, None, None
        trigger = fact.trigger
        if trigger is None:
            trigger = "initial" if job.attempt == 0 else _TRIGGERS.get(job.last_outcome)
        gpus = fact.gpus if fact.gpus is not None else job.gpus
        yield from self._tell(AttemptStarted, job, fact.ts, attempt=job.attempt, gpus=gpus, trigger=trigger)

    def _hinted(self, fact: Hint, job: _Job, now: int) -> Iterator[Told]:
        if job.attempt < 0 or fact.ts < job.started or (job.hint != "unknown" and fact.cause == "unknown"):
            return
        if job.hint == "unknown" or fact.ts < job.hint_ts:
            # Who failed first says why: the others were stopped because of it.
            job.hint, job.hint_ts, job.hint_message = fact.cause, fact.ts, fact.message
            job.exit_code, job.signal = fact.exit_code, fact.signal
        if job.due and job.hint != "unknown":
            yield from self._close(fact.key, job)

    def _ended(self, fact: Ended, job: _Job, now: int) -> Iterator[Told]:
        if not job.open or fact.ts < job.started or job.end is not None:
            return
        job.end = (fact.ts, fact.outcome, fact.cause, fact.message)
        needs = fact.cause == "unknown" and job.hint == "unknown" and fact.outcome == "failed"
        if needs:
            job.due = now + GRACE_US
            self._waiting.add(fact.key)
            return
        yield from self._close(fact.key, job)

    def _finished(self, fact: Finished, job: _Job, now: int) -> Iterator[Told]:
        if job.finished:
            return
        job.finished = True
        job.finish = (fact.ts, fact.outcome)
        if job.open and job.end is None:
            yield from self._ended(Ended(fact.key, fact.ts, fact.outcome, fact.cause, fact.message), job, now)
        elif not job.due:
            yield from self._close(fact.key, job)

    def _gone(self, fact: Gone, job: _Job, now: int) -> Iterator[Told]:
        if job.open and job.end is None:
            job.end = (fact.ts, "cancelled", "unknown", "deleted")
        job.finished = True
        job.finish = job.finish or (fact.ts, job.end[1] if job.end and job.end[1] != "preempted" else "cancelled")
        yield from self._close(fact.key, job)

    def _close(self, key: str, job: _Job) -> Iterator[Told]:
        """Tell the end that is known, with what hints say of its cause, and that the job is over if it is."""
        self._waiting.discard(key)
        job.due = 0
        if job.end is not None and job.open:
            ts, outcome, cause, message = job.end
            ts = max(ts, job.started)
            why: Cause = cause if cause != "unknown" else job.hint  # type: ignore[assignment]
            told = "; ".join(part for part in (message, job.hint_message) if part)
            yield from self._tell(
                AttemptEnded,
                job,
                ts,
                attempt=job.attempt,
                outcome=outcome,
                cause=why if outcome != "succeeded" else "unknown",
                message=told or None,
                exit_code=job.exit_code,
                signal=job.signal,
            )
            job.open, job.ended, job.last_outcome = False, ts, outcome
        job.end = None
        if job.finish is not None:
            ts, outcome = job.finish
            job.finish = None
            yield from self._tell(JobEnded, job, max(ts, job.ended), outcome=outcome)
