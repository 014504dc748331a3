"""A second, slow implementation of the rules, written from the contract alone, to hold the product against.

Every rule stands here as plainly as possible, with its sentence beside it: time is cut into elementary
intervals and each is decided by brute force. Nothing here may import the product's core. All times are integer
microseconds, as in the events.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, NamedTuple

from ettwatch_schemas import (
    COMPONENTS,
    EFFECTIVE,
    AttemptEnded,
    AttemptStarted,
    CheckpointDurable,
    Event,
    JobEnded,
    JobSubmitted,
    PhaseEnded,
    PhaseStarted,
    Progress,
    TrainingEnded,
    TrainingStarted,
    component_of,
)

SECOND: Final = 1_000_000
NO_REPORT: Final = 3600 * SECOND
TRUST: Final = {"trainer": 0, "launcher": 1, "scheduler": 2}

READINGS: Final = (
    "Events of equal times, where no order is told: by their content. Else: by id, or the order of arrival.",
    "1: an end of a span whose start is missing is an event of its attempt like any other. Else: nothing.",
    "1: the last event of an attempt, for an end that is inferred, may belong to a scheduling span. Else: not.",
    "1: the later one's start, for an end that is inferred, is not before this one's start. Else: as told.",
    "1: 'told start' in the rule of job_ended means told by attempt_started. Else: any event of the attempt.",
    "1: job_ended events of equal times: the lexically larger outcome, as for attempt_ended. Else: the smaller.",
    "1: an attempt_ended after the end is no zombie. Else: it raises the flag.",
    "1: 'attempt 0' is the first that is there, whatever its number. Else: only number 0.",
    "1: T1 is never before T0 (a job whose eligible_ts is still to come lasts 0 s). Else: a negative E2E.",
    "1: an earliest attempt_started without gpus falls back to the job's. Else: to a later attempt_started.",
    "1, 5: a scheduling span that runs over an edge of its attempt is cut there: the inner part belongs to rule 5, "
    "the outer to rule 7. Else: its end is the attempt's, or it stays whole and ends last.",
    "1, 5: a scheduling span that begins at the very end of its attempt, or ends at its very start, is outside. "
    "Else: inside, with length 0.",
    "2: within 60 s includes 60 s. Else: less than.",
    "2: heard ranks and the order of the loop are judged after early events were moved to the attempt's start. "
    "Else: as told.",
    "2: of several training_started of one rank that were moved to the attempt's start the one told first is the "
    "earliest, and of several training_ended the one told last the latest. Else: told times play no part.",
    "2: training_started comes before a progress of the same time. Else: the smaller position first.",
    "2: only the latest training_ended counts, of any rank (of equal times the lowest, of equal ranks the larger "
    "position), in time order with progress: of equal times the smaller position first. Else: always last.",
    "2: where the loop starts with a progress, no training_ended of the same time comes before it. Else: the "
    "smaller position first.",
    "2: step rose above the last one that was told. Else: above that of the event before, unknown is no rise.",
    "2: a rollback after a reset keeps what the reset added. Else: it falls to the bare position.",
    "3: begun in the loop is from its start on and before its end; the next advance is later than the begin. "
    "Else: ends included.",
    "3: a span is negative by its times as told. Else: after they were moved into the attempt.",
    "3: negative and background spans name no parent, and bound no start-up. Spans of length 0 do both.",
    "3, 7: a scheduling span without an end that began inside its attempt ends by rule 3 and is not open after "
    "it; one that began at its end or later, or of a number that is no attempt, is open in every later gap. "
    "Else: up to the next attempt.",
    "4: begins before the loop is by the time after moving. Else: as told.",
    "5: a child names its parent wherever both lie in the attempt. Else: only where they overlap.",
    "5: to overlap is to share time: spans that touch or have length 0 do not. Else: they do.",
    "5, 7: an attempt and each gap are judged by themselves: spans outside name no parent in them. In a gap the ends "
    "and starts of whole scheduling spans are compared, as told. Else: they are cut to the gap before that.",
    "6: data_wait_us is read by the clock: what had been told up to the begin of the gap, its microsecond "
    "included, against what was told up to its end. Else: in the order of events.",
    "6: the share of rework is of positions with resets added up; a gap that hung has passed its positions too.",
    "6: report_every_s is that of the training_started which starts the loop. Else: the latest, or the largest.",
    "6: 3,600 s hold where no report_every_s was declared, whatever hang_after is. Else: the larger of both.",
    "7: scheduling spans of several attempts that touch or overlap become one in a gap. Else: by attempt.",
    "7: a gap carries the number of the attempt before it, the first that of the first attempt, 0 without any.",
    "8: after a setting means at it or later, counted from the newest event of the job.",
    "8: a wait for a retry that is closed after 7 days leaves no trace: T1 is the end of the last attempt, as "
    "the text of T1 says. Else: the end plus 7 days.",
    "4 (summary): hidden_s counts containers too. Else: only what ran in the shadow of a longer phase.",
    "4 (summary): unsaved_s: the next attempt is the next that has a start position, trained or not; the last "
    "checkpoint_durable is the latest of all attempts that counts; without any everything is unsaved; shares "
    "are rounded half to even by gap. Else: only the very next attempt; only its own checkpoints.",
    "4 (summary): a job that ended preempted is shown as failed. Else: there is no such status.",
)
"""Where the rules leave a point open: what is done here, and what else could have been done."""

Key = tuple[int, int, str]
"""Attempt, rank and name of a span."""
Piece = tuple[int, int, str]
"""Start, end and stage."""
Segment = tuple[int, str, int, int, int]
"""Attempt, stage, start, end, GPUs."""


@dataclass
class Span:
    """A span as told; `end` None where none was told."""

    key: Key
    phase: str
    parent: str | None
    background: bool
    start: int
    end: int | None = None

    @property
    def scheduling(self) -> bool:
        return component_of(self.phase) == "scheduling"

    @property
    def plays(self) -> bool:
        # 3. Background spans play no part. A span that ends before it starts plays none either.
        return not self.background and (self.end is None or self.end >= self.start)


class Part(NamedTuple):
    """A span with the times between which it plays."""

    phase: str
    start: int
    end: int
    key: Key
    parent: str | None


@dataclass
class Phase:
    """Spans of one phase that overlap or touch, made one."""

    name: str
    start: int
    end: int
    keys: list[Key]
    container: bool = False


@dataclass
class Cut:
    """An advance or a rollback: where it happened, from which position to which."""

    ts: int
    advance: bool
    low: int
    high: int


@dataclass
class Spent:
    """What was effective or rework in one gap, and the positions that it was spent on."""

    low: int
    high: int
    us: int


@dataclass
class Attempt:
    number: int
    told: list[Event]
    spans: list[Span]
    start: int
    start_told: bool  # by attempt_started
    end: int = 0
    outcome: str | None = None  # None while it is open
    cause: str | None = None
    gpus: int = 1
    events: list[tuple[int, Event]] = field(default_factory=list)  # what counts, and the time at which it counts
    would_start: int | None = None  # the loop, if there were an advance
    start_position: int | None = None
    trains: bool = False
    loop_start: int = 0
    loop_end: int = 0
    by_training_ended: bool = False
    hang_limit: Fraction = Fraction(0)
    cuts: list[Cut] = field(default_factory=list)
    waits: list[tuple[int, int]] = field(default_factory=list)  # time, data_wait_us
    position: int = 0
    first_batch: int = 0
    parts: list[Part] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.outcome in ("failed", "preempted")

    @property
    def advances(self) -> list[int]:
        return [cut.ts for cut in self.cuts if cut.advance]

    @property
    def hit_in_loop(self) -> bool:
        return self.failed and self.trains and not self.by_training_ended

    @property
    def interruption(self) -> int:
        # An attempt that failed or was preempted inside its loop was interrupted at its last advance, any
        # other at its end.
        return self.advances[-1] if self.hit_in_loop else self.end


def summarize(
    events: Iterable[Event],
    now: int | None,
    *,
    hang_after_us: int = 300 * SECOND,
    silent_after_us: int = 600 * SECOND,
    lost_after_us: int = 6 * 3600 * SECOND,
    retry_after_us: int = 7 * 86400 * SECOND,
) -> dict[str, Any]:
    """Return the summary of one job as a dict, with `segments` as (attempt, stage, start, end, gpus)."""
    # The timeline is a function of the set of the events: duplicates (same id) count once.
    told = sorted({event.id: event for event in events}.values(), key=lambda event: (event.ts, _content(event)))
    newest = told[-1].ts
    # T1 = now, which is never before the latest event.
    now = newest if now is None else max(now, newest)
    spans = _read_spans(told)
    flags = {"negative_span" for span in spans if span.end is not None and span.end < span.start}

    # 1. Of several job_submitted the earliest counts, of several job_ended the latest.
    submitted = next((event for event in told if isinstance(event, JobSubmitted)), None)
    job_gpus = submitted.gpus if submitted and submitted.gpus is not None else 1
    ends = [event for event in told if isinstance(event, JobEnded)]
    job_ended = max(ends, key=lambda event: (event.ts, event.outcome)) if ends else None
    attempts = _group(told, spans)
    # A job_ended before the told start of any attempt counts for nothing (the job went on).
    if job_ended and any(attempt.start_told and job_ended.ts < attempt.start for attempt in attempts):
        job_ended = None

    # 8. A job with an open attempt whose events stop is shown as silent after a setting, closed as lost after
    # another.
    is_open = bool(attempts) and not job_ended and not _ends_of(attempts[-1])
    lost = is_open and now - newest >= lost_after_us
    silent = is_open and not lost and now - newest >= silent_after_us
    _lay_out(attempts, job_ended, now, lost, flags)
    last = attempts[-1] if attempts else None
    waits = last is not None and last.failed and not job_ended and not lost
    # One that waits for a retry is closed as failed after 7 days.
    expired = waits and now - newest >= retry_after_us

    # T0 = eligible_ts of job_submitted if given, else the time of job_submitted, else the start of attempt 0,
    # else the first event; never later than the start of attempt 0.
    if submitted:
        t0 = submitted.ts if submitted.eligible_ts is None else submitted.eligible_ts
    else:
        t0 = attempts[0].start if attempts else told[0].ts
    if attempts:
        t0 = min(t0, attempts[0].start)

    # T1 = job_ended, or the end of the last attempt where that is later or job_ended is missing; while the job
    # runs or waits for a retry, T1 = now.
    if job_ended:
        t1 = max(job_ended.ts, last.end) if last else job_ended.ts
    elif last is None or last.outcome is None or (waits and not expired):
        t1 = now
    else:
        t1 = last.end
    t1 = max(t0, t1)

    for attempt in attempts:
        _gpus(attempt, job_gpus)
        _find_loop(attempt, hang_after_us, flags)
        _place_spans(attempt)
    hidden: dict[str, int] = defaultdict(int)
    segments = _segments(attempts, spans, hidden, t0, t1, now, job_gpus)

    stages: dict[str, int] = defaultdict(int)
    gpu_stages: dict[str, int] = defaultdict(int)
    for _, stage, start, end, gpus in segments:
        stages[stage] += end - start
        gpu_stages[stage] += (end - start) * gpus
    e2e, effective = t1 - t0, stages.get(EFFECTIVE, 0)

    # TTR: one for each later attempt that trains, from the interruption of the attempt before it to its own
    # first batch. recovery_s is the sum over all later attempts, trained or not, plus, if the last one failed
    # or was preempted, from its interruption to job_ended or now.
    ttr = [b.first_batch - a.interruption for a, b in pairwise(attempts) if b.trains]
    recovery = sum((b.first_batch if b.trains else b.end) - a.interruption for a, b in pairwise(attempts))
    # An attempt that never trains is in recovery up to its end; the first one is start-up.
    if last and last.failed:
        recovery += t1 - last.interruption

    trained_first = bool(attempts) and attempts[0].trains
    return {
        "job": told[0].job,
        "team": submitted.team if submitted else None,
        "model": submitted.model if submitted else None,
        "cluster": submitted.cluster if submitted else None,
        "labels": (submitted.labels or {}) if submitted else {},
        "status": _status(attempts, job_ended, silent, lost, waits, expired),
        "attempts": len(attempts),
        "gpus": last.gpus if last else job_gpus,
        "t0": t0,
        "t1": t1,
        "e2e_s": e2e / SECOND,
        "effective_s": effective / SECOND,
        "ett_pct": 100 * effective / e2e if e2e else None,
        "tts_s": (attempts[0].first_batch - attempts[0].start) / SECOND if trained_first else None,
        "ttr_s": [us / SECOND for us in ttr],
        "recovery_s": recovery / SECOND,
        "nof": sum(attempt.failed for attempt in attempts),
        "nof_infra": sum(a.failed and a.cause not in ("user_code", "config") for a in attempts),
        "nof_preempted": sum(attempt.outcome == "preempted" for attempt in attempts),
        "components": {name: _sum_of(stages, name) / SECOND for name in COMPONENTS},
        "stages": {stage: us / SECOND for stage, us in stages.items() if us},
        "hidden_s": {phase: us / SECOND for phase, us in hidden.items() if us},
        "gpu_effective_s": gpu_stages.get(EFFECTIVE, 0) / SECOND,
        "gpu_e2e_s": sum(gpu_stages.values()) / SECOND,
        # GPU-seconds of scheduling were waited for, not held.
        "gpu_held_s": (sum(gpu_stages.values()) - _sum_of(gpu_stages, "scheduling")) / SECOND,
        "unsaved_s": sum(_unsaved(attempts, index, told) for index in range(len(attempts))) / SECOND,
        "flags": sorted(flags),
        "segments": segments,
        "level_1_s": _level_1(attempts, t0, t1, recovery) / SECOND,
    }


def _content(event: Event) -> str:
    """Return what orders events of equal times where the rules name no order."""
    return event.model_copy(update={"id": ""}).model_dump_json()


def _sum_of(stages: dict[str, int], component: str) -> int:
    return sum(us for stage, us in stages.items() if stage != EFFECTIVE and component_of(stage) == component)


def _status(
    attempts: Sequence[Attempt],
    job_ended: JobEnded | None,
    silent: bool,
    lost: bool,
    waits: bool,
    expired: bool,
) -> str:
    """Pending (no attempt), starting (open attempt, no advance), training, recovering, the rest by name."""
    if silent:
        return "silent"
    if lost:
        return "lost"
    if job_ended:
        return "failed" if job_ended.outcome == "preempted" else job_ended.outcome
    if not attempts:
        return "pending"
    if expired:
        return "failed"
    # Recovering: waits for a retry, or a later attempt is starting.
    if waits:
        return "recovering"
    last = attempts[-1]
    if last.outcome is None:
        return "training" if last.trains else "starting" if len(attempts) == 1 else "recovering"
    return last.outcome


def _level_1(attempts: Sequence[Attempt], t0: int, t1: int, recovery: int) -> int:
    """Identity, exact: E2E = scheduling before attempt 0 + its start-up + recovery + loops + after the loops."""
    if not attempts:
        return t1 - t0
    first, last = attempts[0], attempts[-1]
    total = first.start - t0 + (first.first_batch if first.trains else first.end) - first.start + recovery
    for attempt in attempts:
        if not attempt.trains:
            continue
        # From first batch to training_ended, without it to the last advance, in an open attempt to now.
        ended_or_open = attempt.by_training_ended or attempt.outcome is None
        until = attempt.loop_end if ended_or_open else attempt.advances[-1]
        total += until - attempt.first_batch
        # To the end of an attempt that was not interrupted in its loop.
        total += 0 if attempt.hit_in_loop else attempt.end - until
    # And to job_ended after the last.
    return total + (0 if last.failed else t1 - last.end)


# --- 1. Attempts ---------------------------------------------------------------------------------------------


def _read_spans(told: Sequence[Event]) -> list[Span]:
    """3. Of several starts or ends told for one span the earliest counts. An end without a start is no span."""
    spans: dict[Key, Span] = {}
    for event in told:
        if isinstance(event, PhaseStarted):
            key = (event.attempt, event.rank, event.span)
            spans.setdefault(key, Span(key, event.phase, event.parent, event.background, event.ts))
    for event in told:
        if isinstance(event, PhaseEnded):
            span = spans.get((event.attempt, event.rank, event.span))
            if span and span.end is None:
                span.end = event.ts
    return list(spans.values())


def _group(told: Sequence[Event], spans: Sequence[Span]) -> list[Attempt]:
    """Attempts, in order of their numbers, each with its told start."""
    scheduling = {span.key for span in spans if span.scheduling}
    groups: dict[int, list[Event]] = defaultdict(list)
    for event in told:
        if event.attempt is not None and not isinstance(event, JobSubmitted | JobEnded):
            groups[event.attempt].append(event)
    attempts = []
    for number in sorted(groups):
        others = [event for event in groups[number] if not _is_of(event, scheduling)]
        # A number with nothing but scheduling spans is no attempt yet.
        if others:
            # Start = earliest attempt_started, else the earliest event other than scheduling spans.
            starts = [event.ts for event in others if isinstance(event, AttemptStarted)]
            start = min(starts) if starts else min(event.ts for event in others)
            mine = [span for span in spans if span.key[0] == number]
            attempts.append(Attempt(number, groups[number], mine, start, bool(starts)))
    return attempts


def _is_of(event: Event, keys: set[Key]) -> bool:
    return isinstance(event, PhaseStarted | PhaseEnded) and (event.attempt, event.rank, event.span) in keys


def _ends_of(attempt: Attempt) -> list[AttemptEnded]:
    return [event for event in attempt.told if isinstance(event, AttemptEnded)]


def _lay_out(attempts: Sequence[Attempt], job_ended: JobEnded | None, now: int, lost: bool, flags: set[str]) -> None:
    """Give every attempt its start, end, outcome and cause, and tell which of its events count."""
    for index, attempt in enumerate(attempts):
        later = attempts[index + 1] if index + 1 < len(attempts) else None
        if later:
            # No attempt starts before the one before it.
            later.start = max(later.start, attempt.start)
        ends = _ends_of(attempt)
        times = [event.ts for event in attempt.told]
        if ends:
            # From one attempt_ended: of the most trusted source present the latest (of equal times the
            # lexically larger outcome, then cause).
            end = max(ends, key=lambda event: (TRUST[event.source], event.ts, event.outcome, event.cause))
            attempt.end, attempt.outcome, attempt.cause = end.ts, end.outcome, end.cause
        elif later:
            # The last event of this attempt that is not after the later one's start.
            before = [ts for ts in times if ts <= later.start]
            attempt.end = max(before, default=attempt.start)
            attempt.outcome, attempt.cause = "failed", "unknown"
            flags.add("inferred_end")
        elif job_ended:
            attempt.end, attempt.outcome = job_ended.ts, job_ended.outcome
        elif lost:
            attempt.end, attempt.outcome, attempt.cause = max(times), "failed", "unknown"
            flags.add("inferred_end")
        else:
            attempt.end = now
        # None ends before it starts.
        attempt.end = max(attempt.end, attempt.start)
        if later and attempt.end > later.start:
            trained = any(
                isinstance(event, TrainingStarted | Progress) and event.ts < attempt.end for event in later.told
            )
            if ends and not trained:
                # A spare was allocated early: the next one starts at that end.
                later.start = attempt.end
            else:
                # Else this one ends where the next starts.
                attempt.end = later.start
        scheduling = {span.key for span in attempt.spans if span.scheduling}
        for event in attempt.told:
            if _is_of(event, scheduling):
                continue
            if event.ts > attempt.end:
                # All other events of an attempt after its end are ignored.
                flags |= {"zombie"} if not isinstance(event, AttemptEnded) else set()
            else:
                # What precedes its start is moved to its start.
                attempt.events.append((max(event.ts, attempt.start), event))


def _gpus(attempt: Attempt, job_gpus: int) -> None:
    """Of its earliest attempt_started, else the job's, else 1."""
    for event in attempt.told:
        if isinstance(event, AttemptStarted):
            attempt.gpus = job_gpus if event.gpus is None else event.gpus
            return
    attempt.gpus = job_gpus


# --- 2. The loop ---------------------------------------------------------------------------------------------


def _find_loop(attempt: Attempt, hang_after_us: int, flags: set[str]) -> None:
    """Find the loop, its advances and rollbacks, and the hang limit."""
    progress = [(ts, event) for ts, event in attempt.events if isinstance(event, Progress)]
    started = [(ts, event) for ts, event in attempt.events if isinstance(event, TrainingStarted)]
    ended = [(ts, event) for ts, event in attempt.events if isinstance(event, TrainingEnded)]
    # One rank is heard: the lowest of those whose progress begins within 60 s of the attempt's first.
    begins: dict[int, int] = {}
    for ts, event in progress:
        begins[event.rank] = min(ts, begins.get(event.rank, ts))
    if begins:
        first = min(begins.values())
        rank = min(rank for rank, ts in begins.items() if ts <= first + 60 * SECOND)
        progress = [(ts, event) for ts, event in progress if event.rank == rank]
    # In time order, of equal times the smaller position first.
    progress.sort(key=lambda item: (item[0], item[1].position, item[1].step or 0, item[1].data_wait_us or 0))

    latest = max((ts for ts, _ in [*started, *progress]), default=0)
    # The loop starts with the earliest training_started (of equal times the lowest rank), else with that rank's
    # first progress.
    start: TrainingStarted | Progress
    wait = 0
    report_every: float | None = None
    if started:
        attempt.would_start, start = min(
            started, key=lambda item: (item[0], item[1].rank, item[1].ts, item[1].position)
        )
        report_every = start.report_every_s
    elif progress:
        attempt.would_start, start = progress.pop(0)
        wait = start.data_wait_us or 0
    else:
        return
    attempt.start_position = start.position

    # It ends with the latest training_ended (any rank), unless a training_started or a heard progress is later
    # still: then that training_ended counts for nothing, and the attempt's end cuts the loop.
    loop: list[tuple[int, Progress | TrainingEnded]] = [
        (ts, event) for ts, event in progress if ts >= attempt.would_start
    ]
    attempt.loop_end = attempt.end
    if ended:
        end_ts, end = max(ended, key=lambda item: (item[0], -item[1].rank, item[1].ts, item[1].position))
        if latest <= end_ts:
            attempt.loop_end, attempt.by_training_ended = end_ts, True
            # training_ended counts like a last progress.
            loop.append((end_ts, end))
            loop.sort(key=lambda item: (item[0], item[1].position))

    raw, step, position = start.position, start.step, start.position
    attempt.waits.append((attempt.would_start, wait))
    for ts, point in loop:
        attempt.waits.append((ts, point.data_wait_us or 0))
        difference = point.position - raw
        rose = point.step is not None and step is not None and point.step > step
        if difference > 0:
            attempt.cuts.append(Cut(ts, True, position, position + difference))
            position += difference
        elif difference < 0 and rose:
            # Below, while step rose: no advance, and the differences after it are added to where it was.
            flags.add("position_reset")
        elif difference < 0:
            # Below otherwise: a rollback, from whose position counting goes on.
            attempt.cuts.append(Cut(ts, False, position, position + difference))
            position += difference
            flags.add("rollback")
        raw, step = point.position, step if point.step is None else point.step
    attempt.position = position
    # An attempt trains if it has an advance; without one it has no loop.
    attempt.trains = bool(attempt.advances)
    attempt.loop_start = attempt.would_start
    # The hang limit is the larger of hang_after and 3 x report_every_s; where the producer declared none,
    # 3,600 s.
    attempt.hang_limit = (
        Fraction(NO_REPORT)
        if report_every is None
        else max(Fraction(hang_after_us), 3 * Fraction(report_every) * SECOND)
    )


# --- 3 and 4. Spans, first batch -----------------------------------------------------------------------------


def _place_spans(attempt: Attempt) -> None:
    """Say from when to when each span plays inside the attempt, and find the first batch."""
    for span in attempt.spans:
        if not span.plays:
            continue
        part = Part(span.phase, span.start, max(span.start, _end_of(attempt, span)), span.key, span.parent)
        if span.scheduling:
            # scheduling spans outside their attempt stay for rule 7.
            inside = _within(part, attempt.start, attempt.end)
            attempt.parts += [inside] if inside else []
        elif span.start <= attempt.end:
            # What precedes the start is moved to it; what ends after the attempt ends with it.
            start = max(span.start, attempt.start)
            attempt.parts.append(part._replace(start=start, end=min(max(start, part.end), attempt.end)))
    if not attempt.trains:
        return
    # 4. The start of the loop, or, if a pt2_compilation span that begins before the first advance ends later
    # than that, the end of that span, at most the first advance.
    attempt.first_batch = attempt.loop_start
    advance = attempt.advances[0]
    for part in attempt.parts:
        if component_of(part.phase) == "pt2_compilation" and part.start < advance:
            attempt.first_batch = max(attempt.first_batch, min(part.end, advance))
    # Spans begun before the loop end by the first batch at the latest.
    attempt.parts = [
        part._replace(end=min(part.end, attempt.first_batch)) if part.start < attempt.loop_start else part
        for part in attempt.parts
    ]


def _end_of(attempt: Attempt, span: Span) -> int:
    """3. The told end, or what stands for it in one that never ends."""
    if span.end is not None:
        return span.end
    # A scheduling span begun before its attempt ends at the attempt's start.
    if span.scheduling and span.start < attempt.start:
        return attempt.start
    start = max(span.start, attempt.start)
    if attempt.trains:
        # One begun before the loop ends where the loop starts.
        if start < attempt.loop_start:
            return attempt.loop_start
        # One begun in the loop at the next advance, else at the loop's end.
        if start < attempt.loop_end:
            return min((ts for ts in attempt.advances if ts > start), default=attempt.loop_end)
    # Any other with its attempt.
    return attempt.end


# --- 5. Each instant is charged once -------------------------------------------------------------------------


def _merge(parts: Sequence[Part]) -> list[Phase]:
    """Make spans of one phase that overlap or touch one, from the earliest start to the latest end."""
    phases: list[Phase] = []
    named = {(part.key[0], part.key[1], part.parent) for part in parts if part.parent is not None}
    for part in sorted(parts, key=lambda part: (part.phase, part.start, part.end)):
        if phases and phases[-1].name == part.phase and part.start <= phases[-1].end:
            phases[-1].end = max(phases[-1].end, part.end)
            phases[-1].keys.append(part.key)
        else:
            phases.append(Phase(part.phase, part.start, part.end, [part.key]))
    for phase in phases:
        # A container is a span of which any part is named as parent by a span of the same rank, or whose name is
        # a dotted prefix of that of a span that overlaps it.
        phase.container = any(key in named for key in phase.keys) or any(
            other.name.startswith(phase.name + ".") and max(phase.start, other.start) < min(phase.end, other.end)
            for other in phases
        )
    return phases


def _charged(phases: Sequence[Phase], ts: int, hidden: dict[str, int], length: int) -> str | None:
    """Return the phase charged from `ts` on for `length`, in which none begins or ends; None if none is open."""
    there = [phase for phase in phases if phase.start <= ts < phase.end]
    if not there:
        return None
    leaves = [phase for phase in there if not phase.container]
    if leaves:
        # a. The one that ends last; of equal ends the later start, then the lexically smaller name.
        chosen = min(leaves, key=lambda phase: (-phase.end, -phase.start, phase.name))
    else:
        # b. Only containers are open: the latest start, then the earlier end, then the smaller name.
        chosen = min(there, key=lambda phase: (-phase.start, phase.end, phase.name))
    for phase in there:
        if phase is not chosen:
            hidden[phase.name] += length
    return chosen.name


def _charge(attempt: Attempt, hidden: dict[str, int], passed: list[tuple[int, int]]) -> list[Piece]:
    """Charge every instant of an attempt. `passed` are the ranges of earlier gaps; those of this one are added."""
    phases = _merge(attempt.parts)
    # c. Before the first trainer_init or pt2_compilation span or the moment where the loop starts (or, without
    # an advance, would start): hardware_setup.
    begins = [part.start for part in attempt.parts if component_of(part.phase) in ("trainer_init", "pt2_compilation")]
    begins += [attempt.would_start] if attempt.would_start is not None else []
    setup_until = min(begins, default=attempt.end)
    # From then to the first batch (without a loop, to the attempt's end): trainer_init.
    init_until = attempt.first_batch if attempt.trains else attempt.end
    loop_until = attempt.loop_end if attempt.trains else attempt.end
    edges = {attempt.start, attempt.end, setup_until, init_until, loop_until}
    edges |= {edge for phase in phases for edge in (phase.start, phase.end)}
    edges |= {cut.ts for cut in attempt.cuts if cut.ts > init_until}
    pieces: list[Piece] = []
    free: list[tuple[int, int]] = []
    for start, end in pairwise(sorted(edges)):
        phase = _charged(phases, start, hidden, end - start)
        if phase is not None:
            pieces.append((start, end, phase))
        elif start < setup_until:
            pieces.append((start, end, "hardware_setup"))
        elif start < init_until:
            pieces.append((start, end, "trainer_init"))
        elif start < loop_until:
            free.append((start, end))
        else:
            # After the loop's end: shutdown.
            pieces.append((start, end, "shutdown"))
    if attempt.trains:
        pieces += _in_loop(attempt, free, passed)
    return sorted(pieces)


# --- 6. In the loop, where no phase is open ------------------------------------------------------------------


def _in_loop(attempt: Attempt, free: list[tuple[int, int]], passed: list[tuple[int, int]]) -> list[Piece]:
    pieces: list[Piece] = []
    begin = attempt.first_batch
    for cut in [*attempt.cuts, None]:
        end = max(begin, cut.ts) if cut else attempt.loop_end
        room = [(low, high) for low, high in free if begin <= low and high <= end]
        # D = its length without phases.
        length = sum(high - low for low, high in room)
        # The growth of data_wait_us over it, from the highest value before to the highest so far; at most D.
        before = max(wait for ts, wait in attempt.waits if ts <= begin)
        growth = max(wait for ts, wait in attempt.waits if ts <= end) - before
        stall = min(growth, length)
        rest = length - stall
        if cut and not cut.advance:
            # A gap that ends in a rollback: R is no_progress.
            amounts = [("wasted_training.no_progress", rest)]
        elif cut:
            # One that ends in an advance: if R > the hang limit, R is hang; else the share of its positions that
            # earlier gaps of the job had already passed is rework, and the rest is effective.
            share = Fraction(_overlap(passed, cut.low, cut.high), cut.high - cut.low)
            rework = round(rest * share)
            if rest > attempt.hang_limit:
                amounts = [("wasted_training.hang", rest)]
            else:
                amounts = [("wasted_training.rework", rework), (EFFECTIVE, rest - rework)]
                attempt.spent.append(Spent(cut.low, cut.high, rest))
            passed.append((cut.low, cut.high))
        else:
            amounts = [(_tail(attempt, rest, passed), rest)]
        pieces += _lay([("wasted_training.data_stall", stall), *amounts], room)
        begin = end
    return pieces


def _tail(attempt: Attempt, rest: int, passed: Sequence[tuple[int, int]]) -> str:
    """Return what R is in what follows the last advance or rollback."""
    # If it succeeded or was cancelled without training_ended: shutdown (also beyond the limit).
    if attempt.outcome in ("succeeded", "cancelled") and not attempt.by_training_ended:
        return "shutdown"
    # Beyond the hang limit: hang.
    if rest > attempt.hang_limit:
        return "wasted_training.hang"
    # If the loop was ended by training_ended or the attempt failed or was preempted: no_progress.
    if attempt.by_training_ended or attempt.failed:
        return "wasted_training.no_progress"
    # While it runs: effective, or rework if the position stands inside what had been passed before (at the upper
    # end of a range it does not).
    inside = any(low <= attempt.position < high for low, high in passed)
    return "wasted_training.rework" if inside else EFFECTIVE


def _overlap(ranges: Sequence[tuple[int, int]], low: int, high: int) -> int:
    """Return how much of a range the union of others covers."""
    edges = {low, high, *(edge for pair in ranges for edge in pair if low < edge < high)}
    return sum(b - a for a, b in pairwise(sorted(edges)) if any(start <= a and b <= end for start, end in ranges))


def _lay(amounts: Sequence[tuple[str, int]], room: Sequence[tuple[int, int]]) -> list[Piece]:
    """Lay amounts over the free time of a gap, in their order."""
    pieces: list[Piece] = []
    stages = [(stage, us) for stage, us in amounts if us]
    for low, high in room:
        at = low
        while at < high:
            stage, us = stages.pop(0)
            take = min(us, high - at)
            pieces.append((at, at + take, stage))
            at += take
            if us > take:
                stages.insert(0, (stage, us - take))
    return pieces


# --- 7. Between attempts -------------------------------------------------------------------------------------


def _segments(
    attempts: Sequence[Attempt],
    spans: Sequence[Span],
    hidden: dict[str, int],
    t0: int,
    t1: int,
    now: int,
    job_gpus: int,
) -> list[Segment]:
    """Return the timeline from T0 to T1."""
    parts = _waiting(attempts, spans, now)
    segments: list[Segment] = []

    def wait(start: int, end: int, attempt: int, gpus: int) -> None:
        there = [part for part in parts if part.start < end and part.end > start]
        for low, high, stage in _charge_wait(_merge(there), hidden, start, end):
            segments.append((attempt, stage, low, high, gpus))

    if not attempts:
        wait(t0, t1, 0, job_gpus)
        return segments
    # GPU-seconds weigh a gap with the gpus of the attempt before it, the one before attempt 0 with attempt 0's.
    wait(t0, attempts[0].start, attempts[0].number, attempts[0].gpus)
    passed: list[tuple[int, int]] = []
    for index, attempt in enumerate(attempts):
        for low, high, stage in _charge(attempt, hidden, passed):
            segments.append((attempt.number, stage, low, high, attempt.gpus))
        if index + 1 < len(attempts):
            wait(attempt.end, attempts[index + 1].start, attempt.number, attempt.gpus)
    # After the last attempt: if it failed or was preempted, the same, up to job_ended or now; else shutdown up to
    # job_ended.
    last = attempts[-1]
    if last.failed:
        wait(last.end, t1, last.number, last.gpus)
    elif last.end < t1:
        segments.append((last.number, "shutdown", last.end, t1, last.gpus))
    return segments


def _waiting(attempts: Sequence[Attempt], spans: Sequence[Span], now: int) -> list[Part]:
    """Return the scheduling spans as rule 7 sees them: of any attempt."""
    known = {attempt.number: attempt for attempt in attempts}
    parts = []
    for span in spans:
        if not span.scheduling or not span.plays:
            continue
        attempt = known.get(span.key[0])
        if span.end is not None:
            end = span.end
        elif attempt is None or (span.start >= attempt.end and span.start > attempt.start):
            # One that never ended reaches to its attempt's start, or to now.
            end = now
        else:
            end = _end_of(attempt, span)
        parts.append(Part(span.phase, span.start, max(span.start, end), span.key, span.parent))
    return parts


def _within(part: Part, start: int, end: int) -> Part | None:
    """Return what of a scheduling span lies between two times; None if it lies outside."""
    if part.start < end and part.end > start:
        return part._replace(start=max(part.start, start), end=min(part.end, end))
    return None


def _charge_wait(phases: Sequence[Phase], hidden: dict[str, int], start: int, end: int) -> list[Piece]:
    """scheduling, or the scheduling.* span open there."""
    edges = {start, end} | {edge for p in phases for edge in (p.start, p.end) if start < edge < end}
    return [
        (low, high, _charged(phases, low, hidden, high - low) or "scheduling") for low, high in pairwise(sorted(edges))
    ]


# --- What comes out ------------------------------------------------------------------------------------------


def _unsaved(attempts: Sequence[Attempt], index: int, told: Sequence[Event]) -> int:
    """Of the in-loop time of attempts that failed or were preempted, what was spent on positions above.

    Above those from which the next attempt started, or, if none did, above the last checkpoint_durable.
    """
    attempt = attempts[index]
    if not attempt.failed:
        return 0
    starts = [later.start_position for later in attempts[index + 1 :] if later.start_position is not None]
    if starts:
        kept: int | None = starts[0]
    else:
        counted = {event.id for each in attempts for _, event in each.events}
        durable = [event for event in told if isinstance(event, CheckpointDurable) and event.id in counted]
        kept = max(durable, key=lambda event: (event.ts, event.position)).position if durable else None
    total = 0
    for spent in attempt.spent:
        above = spent.high - (spent.low if kept is None else min(spent.high, max(spent.low, kept)))
        total += round(Fraction(spent.us * above, spent.high - spent.low))
    return total
