"""Records of Slurm to events: which of them are runs of one job, and what each run was.

A requeued job keeps its id and gets a new time of submission (`sacct --duplicates` shows both records). An id that is
given again to another job has one, too. The second is told from the first by its number of restarts, where Slurm tells
it; else a record goes on with the job if its user and name are the same and the run before could run again.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from ettwatch_schemas import AttemptEnded, AttemptStarted, Cause, JobEnded, JobSubmitted, PhaseEnded, PhaseStarted
from ettwatch_sources.feed import Feed
from ettwatch_sources.slurm.record import Record
from ettwatch_sources.slurm.words import State, reason_of, state_of
from ettwatch_sources.told import Told

_KEPT: Final = 200_000
_SOON_US: Final = 3_600_000_000
_RUNS: Final = 50
_WAIT: Final = "scheduling.queue_wait"


@dataclass(slots=True)
class Known:
    """What is known of an id: the job that has it, and its latest run."""

    job: str
    who: str
    submit: int | None
    attempt: int
    started: bool
    end: int | None
    state: str
    again: bool
    """Whether another run may follow, as far as its state says."""
    runs: dict[str, list[Any]] = field(default_factory=dict)
    """Submission of each run of the job, the latest of them, to its attempt, its trigger, and what its record said."""


class Ids:
    """The ids that were seen, the latest of them."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._old: OrderedDict[str, int] = OrderedDict()
        self._kept = kept

    def get(self, key: str) -> Known | None:
        """Return what is known of an id."""
        return self._known.get(key)

    def put(self, key: str, known: Known) -> None:
        """Note what is known of an id now."""
        self._known[key] = known
        self._known.move_to_end(key)
        if len(self._known) > self._kept:
            self._known.popitem(last=False)

    def was_given(self, key: str) -> bool:
        """Tell whether an id had a job that is over and was let go."""
        return key in self._old

    def let_go(self, before: int) -> None:
        """Keep of jobs that were over before a time (µs) only that their ids were given."""
        for key in [key for key, known in self._known.items() if not known.again and (known.end or before) < before]:
            self._old[key] = self._known.pop(key).end or 0
        while len(self._old) > self._kept:
            self._old.popitem(last=False)

    def dump(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"known": {key: asdict(known) for key, known in self._known.items()}, "old": dict(self._old)}

    def load(self, told: dict[str, Any]) -> None:
        """Take what `dump` gave. Raises KeyError and TypeError where it is something else."""
        for key, value in told["known"].items():
            self.put(str(key), Known(**value))
        self._old.update({str(key): int(end) for key, end in told["old"].items()})


def tell(feed: Feed, record: Record, ids: Ids, final: bool = True) -> Iterator[Told]:
    """Yield the events of a record. Records of one id must come in the order of their submission.

    `final` says that no later record of the job is on its way: its end may be told.
    """
    cluster = record.cluster or feed.options.cluster or ""
    key = f"{cluster}/{record.job_id}"
    word, state = state_of(record.state)
    before = ids.get(key)
    seen = f"{record.state}|{record.reason}|{record.start}|{record.end}|{record.eligible}|{record.gpus}"
    run = before.runs.get(str(record.submit)) if before is not None else None
    if run is not None and run[2] == seen:
        return
    started = record.start is not None and word != "PENDING" and not _never_ran(record, word)
    ended = state is not None and state.outcome is not None and record.end is not None
    if before is not None and run is not None and record.submit != before.submit:
        # An earlier run, of which something new is told: the latest run stays what it is.
        run[2] = seen
        known, trigger = replace(before, attempt=run[0]), run[1]
    elif before is not None and run is None and _is_older(record, before):
        feed.flag("missed", before.job)
        return
    else:
        known, trigger = _place(feed, record, cluster, before, ids.was_given(key))
        known.started = started
        known.end = record.end if ended else None
        known.state = word
        known.again = state is None or state.outcome is None or state.again
        known.runs[str(record.submit)] = [known.attempt, trigger, seen]
        while len(known.runs) > _RUNS:
            del known.runs[next(iter(known.runs))]
        ids.put(key, known)
    if state is None:
        feed.unknown(f"state {word}", known.job)
    yield from _tell(feed, record, known, state, trigger, started, final)


def _place(feed: Feed, record: Record, cluster: str, before: Known | None, given: bool) -> tuple[Known, str | None]:
    """Which job the record belongs to, and which attempt of it it is."""
    who = f"{record.user}/{record.name}"
    name = feed.options.job or (f"{cluster}-{record.job_id}" if cluster else record.job_id)
    if before is None and not given:
        attempt = record.restarts or 0
        return Known(name, who, record.submit, attempt, False, None, "", True), "initial" if not attempt else None
    if before is not None and before.submit == record.submit:
        run = before.runs.get(str(record.submit))
        return before, run[1] if run else None
    if before is not None and _goes_on(record, before, who):
        attempt = before.attempt + before.started if record.restarts is None else record.restarts
        trigger = {"PREEMPTED": "preemption", "REQUEUED": None}.get(before.state, "failure" if before.started else None)
        return Known(before.job, who, record.submit, attempt, False, None, "", True, before.runs), trigger
    if before is not None:
        feed.flag("id_recycled", before.job)
    if record.submit is not None and feed.options.job is None:
        name = f"{name}@{datetime.fromtimestamp(record.submit / 1e6, UTC):%Y%m%dT%H%M%S}"
    feed.flag("id_recycled", name)
    return Known(name, who, record.submit, record.restarts or 0, False, None, "", True), "initial"


def _is_older(record: Record, before: Known) -> bool:
    """A run from before the one that is known, seen after it: its number cannot be told any more."""
    return record.submit is not None and before.submit is not None and record.submit < before.submit


def _goes_on(record: Record, before: Known, who: str) -> bool:
    if record.restarts is not None:
        return record.restarts > before.attempt and who == before.who
    if who != before.who or not before.again:
        return False
    late = record.submit is not None and before.end is not None and record.submit - before.end > _SOON_US
    return not late


def _never_ran(record: Record, word: str) -> bool:
    """A job that is cancelled in the queue gets its end as its start, too, by some versions."""
    return word in {"CANCELLED", "REVOKED"} and record.start == record.end and not record.nodes


def _tell(
    feed: Feed, record: Record, known: Known, state: State | None, trigger: str | None, started: bool, final: bool
) -> Iterator[Told]:
    own: dict[str, Any] = {"job": known.job, "source": "scheduler"}
    options = feed.options
    gpus = options.gpus if options.gpus is not None else record.gpus
    submit = record.submit if record.submit is not None else record.eligible
    if submit is None:
        feed.flag("no_submit", known.job)
    elif known.attempt == (record.restarts or 0) or not known.attempt:
        yield from feed.tell(
            JobSubmitted,
            record.line,
            ts=submit,
            team=options.team or record.account or None,
            model=options.model,
            cluster=options.cluster or record.cluster or None,
            gpus=gpus,
            eligible_ts=_eligible(feed, record, known, submit),
            labels=_labels(record),
            **own,
        )
    if started and record.start is not None:
        eligible = record.eligible
        if eligible is not None and eligible < record.start:
            span = f"{_WAIT}@{eligible}"
            wait = {"attempt": known.attempt, "span": span} | own
            yield from feed.tell(PhaseStarted, record.line, ts=eligible, phase=_WAIT, **wait)
            yield from feed.tell(PhaseEnded, record.line, ts=record.start, **wait)
        yield from feed.tell(
            AttemptStarted, record.line, ts=record.start, attempt=known.attempt, gpus=gpus, trigger=trigger, **own
        )
    if record.reason and reason_of(record.reason) is None:
        feed.unknown(f"reason {record.reason}", known.job)
    if state is None or state.outcome is None or record.end is None:
        if state is not None and state.outcome is not None:
            feed.flag("no_end", known.job)
        return
    outcome, cause = _verdict(record, state)
    if started:
        if outcome == "failed" and cause == "unknown":
            feed.flag("no_cause", known.job)
        yield from feed.tell(
            AttemptEnded,
            record.line,
            ts=record.end,
            attempt=known.attempt,
            outcome=outcome,
            cause=cause,
            exit_code=record.exit_code,
            signal=record.signal,
            message=_message(record),
            **own,
        )
    if not state.again and final:
        yield from feed.tell(JobEnded, record.line, ts=record.end, outcome=outcome, **own)
    elif state.again and final:
        feed.flag("no_end", known.job)


def _eligible(feed: Feed, record: Record, known: Known, submit: int) -> int | None:
    if record.eligible is None:
        feed.flag("no_eligible", known.job)
        return None
    return max(record.eligible, submit)


def _verdict(record: Record, state: State) -> tuple[str, Cause]:
    """How the run ended, by its state, and where that does not say why, by its reason, steps and exit code."""
    outcome, cause = str(state.outcome), state.cause
    reason = reason_of(record.reason) if record.reason else None
    if cause == "unknown" and reason is not None and reason.cause not in {None, "unknown"}:
        cause = reason.cause or "unknown"
        if outcome == "preempted" and cause == "hardware":
            outcome = "failed"  # requeued because its node went down
    if outcome == "failed" and cause == "unknown":
        steps = {state_of(step)[0] for step in record.steps}
        if "OUT_OF_MEMORY" in steps:
            cause = "host_memory"
        elif "NODE_FAIL" in steps:
            cause = "hardware"
        elif record.exit_code in {126, 127}:
            cause = "config"
    return outcome, cause


def _message(record: Record) -> str:
    parts = [f"State={record.state}"]
    if record.reason and record.reason != "None":
        parts.append(f"Reason={record.reason}")
    return " ".join(parts)


def _labels(record: Record) -> dict[str, str] | None:
    told = {"user": record.user, "partition": record.partition, "qos": record.qos, "job_name": record.name}
    return {name: text for name, text in told.items() if text} or None
