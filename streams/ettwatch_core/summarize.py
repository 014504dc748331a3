"""From a timeline to what is published: summary, attempts, segments and phases of a job."""

from collections.abc import Iterable
from typing import NamedTuple

from ettwatch_core.carry import Carry
from ettwatch_core.line import Line
from ettwatch_core.rules import RULES_VERSION, SECOND, Rules
from ettwatch_core.spans import Cluster
from ettwatch_core.state import JobState
from ettwatch_core.tally import Tally, seconds
from ettwatch_core.timeline import Timeline, lay_out
from ettwatch_core.unsaved import unsaved
from ettwatch_schemas import EFFECTIVE, AttemptSummary, JobSummary, PhaseSpan, Segment

__all__ = ["summarize"]


def summarize(state: JobState, rules: Rules, now: int | None = None) -> JobSummary:
    """Return only the summary of a job: as :func:`~ettwatch_core.snapshot`, but cheaper for a single look."""
    timeline = lay_out(state, rules, now)
    return job_summary(state, timeline, tallies_of(timeline), unsaved_of(timeline, state.carry))


def tallies_of(timeline: Timeline) -> list[Tally]:
    """Return the sums of each line."""
    return [line.tally(timeline.gpus_of(line.bounds)) for line in timeline.lines]


def join_segments(segments: list[Segment]) -> list[Segment]:
    """Make neighbours one that differ only in time."""
    out: list[Segment] = []
    for seg in segments:
        if out:
            last = out[-1]
            if last.end == seg.start and last.stage == seg.stage and last[1] == seg[1] and last[5] == seg[5]:
                out[-1] = last._replace(end=seg.end)
                continue
        out.append(seg)
    return out


def chain(before: list[Segment], after: list[Segment]) -> list[Segment]:
    """Return two lists of segments, each joined, as one: only where they meet there can be anything to join."""
    if not before or not after:
        return before or after
    return [*before[:-1], *join_segments([before[-1], after[0]]), *after[1:]]


def segments_of(job: str, timeline: Timeline) -> list[Segment]:
    """Return the segments of the unsettled part in time order, disjoint and gapless."""
    make = Segment._make
    parts = []
    for line in timeline.lines:
        number, gpus = line.bounds.group.number, timeline.gpus_of(line.bounds)
        parts.append([make((job, number, stage, start, end, gpus)) for start, end, stage in line.pieces])
    parts += [
        [make((job, gap.attempt, stage, start, end, gap.gpus)) for start, end, stage in gap.pieces]
        for gap in timeline.gaps
    ]
    out: list[Segment] = []
    for part in sorted((part for part in parts if part), key=lambda part: part[0].start):
        out = chain(out, part)
    return out


def spans_of(job: str, timeline: Timeline) -> list[PhaseSpan]:
    """Return the merged phases of the unsettled part by start."""
    rows = []
    for line in timeline.lines:
        number = line.bounds.group.number
        rows += [span_row(job, number, c, False) for c in line.clusters]
        rows += [span_row(job, number, c, True) for c in line.background]
    for gap in timeline.gaps:
        rows += [span_row(job, gap.attempt, c, False) for c in gap.clusters]
    return by_time(rows)


def by_time(spans: Iterable[PhaseSpan]) -> list[PhaseSpan]:
    """Sort phases by start and end."""
    return sorted(spans, key=lambda row: (row.start, row.end, row))


def span_row(job: str, attempt: int, c: Cluster, background: bool) -> PhaseSpan:
    ends: dict[int, int] = {}
    for part in c.parts:
        ends[part.raw.rank] = max(ends.get(part.raw.rank, 0), part.end)
    ordered = sorted(((end, -rank) for rank, end in ends.items()), reverse=True)
    return PhaseSpan(
        job=job,
        attempt=attempt,
        phase=c.phase,
        start=c.start,
        end=c.end,
        ranks=len(ends),
        background=background,
        container=c.container,
        charged=c.charged,
        hidden=0 if background else c.end - c.start - c.charged,
        last_rank=-ordered[0][1],
        behind=ordered[0][0] - ordered[1][0] if len(ordered) > 1 else 0,
        open=any(part.open for part in c.parts),
    )


def resume_positions(timeline: Timeline) -> list[int | None]:
    """Return from which position the job went on after each line, else the last durable one.

    The last item holds for what was settled before the first line.
    """
    position = timeline.durables[-1][1] if timeline.durables else None
    positions = []
    for line in reversed(timeline.lines):
        positions.append(position)
        if line.start_position is not None:
            position = line.start_position
    return [*reversed(positions), position]


Unsaved = tuple[list[int], list[int]]
"""What was discarded (µs): by each unresolved settled attempt, and by each line."""


def unsaved_of(timeline: Timeline, carry: Carry | None) -> Unsaved:
    """Return what was discarded (µs): of the unresolved settled attempts, and of the lines."""
    positions = resume_positions(timeline)
    settled = [] if carry is None else [unsaved(old.spent, positions[-1]) for old in carry.unresolved]
    lines = []
    for i, line in enumerate(timeline.lines):
        spent = [*carry.spent, *line.spent] if i == 0 and carry is not None else line.spent
        lines.append(unsaved(spent, positions[i]) if line.bounds.failed else 0)
    return settled, lines


def attempt_summaries(
    job: str, timeline: Timeline, carry: Carry | None, tallies: list[Tally], discarded_us: Unsaved
) -> list[AttemptSummary]:
    """Return the attempts that are not final, the unresolved ones of the settled part first."""
    before, discarded = discarded_us
    out = []
    if carry is not None:
        for old, lost in zip(carry.unresolved, before, strict=True):
            out.append(old.summary.model_copy(update={"unsaved_s": seconds(lost)}))
    interruption = None if carry is None else carry.interruption
    for i, (line, tally, lost) in enumerate(zip(timeline.lines, tallies, discarded, strict=True)):
        resumed = carry if i == 0 else None
        out.append(attempt_summary(job, timeline, line, tally, resumed, interruption, lost))
        interruption = line.interruption
    return out


def attempt_summary(
    job: str,
    timeline: Timeline,
    line: Line,
    tally: Tally,
    carry: Carry | None,
    interruption: int | None,
    lost: int,
) -> AttemptSummary:
    """Return one attempt; ``carry`` only for the one that a settled part belongs to."""
    b, loop = line.bounds, line.loop
    if carry is not None:
        whole = carry.current.copy()
        whole.add(tally)
        tally = whole
    batch = line.first_batch
    start_up = (b.end if batch is None else batch) - (b.start if interruption is None else interruption)
    flags = line.flags if carry is None else line.flags | carry.current_flags
    return AttemptSummary(
        job=job,
        attempt=b.group.number,
        start=b.start,
        end=b.end,
        open=b.open,
        outcome=b.outcome,
        cause=b.cause if b.outcome not in (None, "succeeded") else None,
        exit_code=b.exit_code,
        signal=b.signal,
        message=b.message,
        trigger=b.trigger,
        gpus=timeline.gpus_of(b),
        world_size=b.world_size,
        trained=loop is not None,
        loop_start=None if loop is None else loop.start,
        first_batch=batch,
        last_advance=None if loop is None else loop.last_advance,
        loop_end=None if loop is None else loop.end,
        start_position=line.start_position,
        end_position=None if loop is None else loop.position,
        tts_s=seconds(start_up) if interruption is None and batch is not None else None,
        ttr_s=seconds(start_up) if interruption is not None and batch is not None else None,
        recovery_s=0.0 if interruption is None else seconds(start_up),
        effective_s=seconds(tally.stages.get(EFFECTIVE, 0)),
        components=tally.component_seconds(),
        stages=tally.stage_seconds(),
        hidden_s=tally.hidden_seconds(),
        unsaved_s=seconds(lost),
        flags=sorted(flags),
    )


class Counts(NamedTuple):
    """Starts, recoveries and failures up to the end of some lines (µs)."""

    tts: int | None
    ttr: list[int]
    recovery: int
    nof: int
    nof_infra: int
    nof_preempted: int
    interruption: int | None


def count(lines: list[Line], carry: Carry | None) -> Counts:
    """Count on from the settled part."""
    tts, ttr, recovery, nof, infra, preempted, interruption = None, [], 0, 0, 0, 0, None
    if carry is not None:
        tts, ttr, recovery, interruption = carry.tts, list(carry.ttr), carry.recovery, carry.interruption
        nof, infra, preempted = carry.nof, carry.nof_infra, carry.nof_preempted
    for i, line in enumerate(lines):
        b = line.bounds
        if not (i == 0 and carry is not None and carry.mark is not None):  # else its start is counted
            reached = b.end if line.first_batch is None else line.first_batch
            if interruption is None:
                tts = None if line.first_batch is None else reached - b.start
            else:
                recovery += reached - interruption
                if line.first_batch is not None:
                    ttr.append(reached - interruption)
        if b.failed:
            nof += 1
            infra += b.cause not in ("user_code", "config")
            preempted += b.outcome == "preempted"
        interruption = line.interruption
    return Counts(tts, ttr, recovery, nof, infra, preempted, interruption)


def job_summary(state: JobState, timeline: Timeline, tallies: list[Tally], discarded_us: Unsaved) -> JobSummary:
    """Return the summary of a job from the timeline of its unsettled part."""
    carry = state.carry
    lines = timeline.lines
    tally = Tally() if carry is None else carry.tally.copy()
    for part in tallies:
        tally.add(part)
    for gap in timeline.gaps:
        tally.add(gap.tally())
    counts = count(lines, carry)
    recovery = counts.recovery
    if lines and lines[-1].bounds.failed:
        recovery += timeline.t1 - lines[-1].interruption
    flags = state.flags | timeline.flags | ({"zombie"} if timeline.old_zombies else set())
    if carry is not None:
        flags |= carry.flags | carry.current_flags
    for line in lines:
        flags |= line.flags
    settled, discarded = discarded_us
    lost = sum(settled) + sum(discarded) + (0 if carry is None else carry.unsaved)
    e2e = timeline.t1 - timeline.t0
    effective = tally.stages.get(EFFECTIVE, 0)
    submit = timeline.submit
    return JobSummary(
        job=state.job,
        version=(state.accepted << 32) | (timeline.now // SECOND & 0xFFFFFFFF),
        rules_version=RULES_VERSION,
        team=None if submit is None else submit[4],
        model=None if submit is None else submit[5],
        cluster=None if submit is None else submit[6],
        labels={} if submit is None else dict(submit[9]),
        status=timeline.status,
        attempts=len(lines) + (0 if carry is None else carry.attempts - 1),
        gpus=timeline.gpus_of(lines[-1].bounds) if lines else timeline.job_gpus,
        t0=timeline.t0,
        t1=timeline.t1,
        e2e_s=seconds(e2e),
        effective_s=seconds(effective),
        ett_pct=100 * effective / e2e if e2e else None,
        tts_s=None if counts.tts is None else seconds(counts.tts),
        ttr_s=[seconds(us) for us in counts.ttr],
        recovery_s=seconds(recovery),
        nof=counts.nof,
        nof_infra=counts.nof_infra,
        nof_preempted=counts.nof_preempted,
        components=tally.component_seconds(),
        stages=tally.stage_seconds(),
        hidden_s=tally.hidden_seconds(),
        gpu_effective_s=seconds(tally.gpu_effective),
        gpu_e2e_s=seconds(tally.gpu_total),
        gpu_held_s=seconds(tally.gpu_total - tally.gpu_waited),
        unsaved_s=seconds(lost),
        flags=sorted(flags),
    )
