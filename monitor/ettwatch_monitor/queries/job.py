"""One job: its numbers, its attempts, its timeline."""

from typing import Any, Final, cast

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.shapes import AttemptRow, JobDetail, Mark, PhaseRow, Seg, Timeline
from ettwatch_monitor.queries.hosts import Hosts, hosts_of, names_of
from ettwatch_monitor.queries.jobs import row_of
from ettwatch_monitor.queries.ownership import owner_of
from ettwatch_monitor.queries.rows import hours, micros, named

__all__ = ["MOST_PARTS", "job_detail", "near_names", "timeline"]

MOST_PARTS: Final = 5_000
"""Segments, phases and marks of each kind that are answered at once."""

_SPAN: Final = (
    "attempt, phase, component, toUnixTimestamp64Micro(start) AS start_us, toUnixTimestamp64Micro(end) AS end_us, "
    "open, background, container, ranks, last_rank, behind_s, charged_s, hidden_s"
)
_MOST_STRAGGLERS: Final = 20
_IN_TIME: Final = (
    "start < fromUnixTimestamp64Micro({until:Int64}, 'UTC') AND end > fromUnixTimestamp64Micro({since:Int64}, 'UTC')"
)


def job_detail(store: Store, owners: Owners, job: str) -> JobDetail | None:
    """Return the numbers of a job; None if there is none of this name. Raises StoreError."""
    who = {"job": job}
    answer = store.query("SELECT * FROM jobs WHERE job = {job:String}", who)
    if not answer.rows:
        return None
    told = named(answer.columns, answer.rows[0])
    stages_gpu = store.query(
        "SELECT stage, sum(gpu_us) FROM segments WHERE job = {job:String} GROUP BY stage ORDER BY stage", who
    )
    attempts = store.query("SELECT * FROM attempts WHERE job = {job:String} ORDER BY attempt", who)
    waits = store.query(
        f"SELECT {_SPAN} FROM phases WHERE job = {{job:String}} AND behind_us > 0 "
        f"ORDER BY behind_us DESC, start_us LIMIT {_MOST_STRAGGLERS}",
        who,
    )
    hosts = hosts_of(store, job)
    owned = {stage: owner_of(owners.of(stage, told["cluster"], told["model"])) for stage in told["stages"]}
    return JobDetail(
        row=row_of(told),
        labels=told["labels"],
        effective_s=told["effective_s"],
        ttr_s=told["ttr_s"],
        nof_infra=told["nof_infra"],
        nof_preempted=told["nof_preempted"],
        unsaved_s=told["unsaved_s"],
        components=told["components"],
        stages=told["stages"],
        stages_gpu_h={str(stage): hours(us) for stage, us in stages_gpu.rows},
        hidden_s=told["hidden_s"],
        owners={stage: owner for stage, owner in owned.items() if owner is not None},
        flags=told["flags"],
        rules_version=told["rules_version"],
        as_of_us=micros(told["as_of"]),
        attempts=[_attempt(named(attempts.columns, row), hosts) for row in attempts.rows],
        stragglers=[_phase(named(waits.columns, row), hosts) for row in waits.rows],
    )


def timeline(store: Store, job: str, start: int | None = None, end: int | None = None) -> Timeline | None:
    """Return what to draw of a job, or of some of its time (µs); None if there is no such job. Raises StoreError."""
    found = store.query(
        "SELECT toUnixTimestamp64Micro(t0), toUnixTimestamp64Micro(t1) FROM jobs WHERE job = {job:String}", {"job": job}
    ).rows
    if not found:
        return None
    t0, t1 = cast("tuple[int, int]", found[0])
    since, until = max(t0, start if start is not None else t0), min(t1, end if end is not None else t1)
    who: dict[str, object] = {"job": job, "since": since, "until": until}
    segments = store.query(
        "SELECT attempt, stage, component, toUnixTimestamp64Micro(start) AS start_us, toUnixTimestamp64Micro(end) AS "
        f"end_us, gpus FROM segments WHERE job = {{job:String}} AND {_IN_TIME} "
        f"ORDER BY duration_us DESC LIMIT {MOST_PARTS + 1}",
        who,
    ).rows
    phases = store.query(
        f"SELECT {_SPAN} FROM phases WHERE job = {{job:String}} AND {_IN_TIME} "
        f"ORDER BY duration_us DESC LIMIT {MOST_PARTS + 1}",
        who,
    )
    marks = _marks(store, who)
    told = [named(phases.columns, row) for row in phases.rows[:MOST_PARTS]]
    hosts = hosts_of(store, job) if any(one["behind_s"] > 0 for one in told) else {}
    spans = [_phase(one, hosts) for one in told]
    return Timeline(
        job=job,
        t0_us=t0,
        t1_us=t1,
        from_us=since,
        to_us=until,
        segments=_joined([Seg.model_construct(**_seg(row)) for row in segments[:MOST_PARTS]]),
        phases=sorted(spans, key=lambda span: (span.start_us, -span.end_us)),
        marks=sorted(marks[:MOST_PARTS], key=lambda mark: mark.at_us),
        truncated=max(len(segments), len(phases.rows), len(marks)) > MOST_PARTS,
    )


def near_names(store: Store, job: str, most: int = 3) -> list[str]:
    """Return jobs whose names hold `job`, or are much like it, the most alike first. Raises StoreError."""
    found = store.query(
        "SELECT job, positionCaseInsensitiveUTF8(job, {job:String}) = 0 AS apart, "
        "jaroWinklerSimilarity(lower(job), lower({job:String})) AS likeness FROM jobs "
        f"WHERE NOT apart OR likeness > 0.8 ORDER BY apart, likeness DESC, job LIMIT {int(most)}",
        {"job": job},
    )
    return [str(row[0]) for row in found.rows]


def _attempt(told: dict[str, Any], hosts: Hosts) -> AttemptRow:
    same = (
        *("attempt", "open", "outcome", "cause", "exit_code", "signal", "message", "trigger", "gpus", "world_size"),
        *("trained", "duration_s", "tts_s", "ttr_s", "recovery_s", "effective_s", "unsaved_s", "components", "stages"),
        *("hidden_s", "flags"),
    )
    first = told["first_batch"]
    return AttemptRow(
        start_us=micros(told["start"]),
        end_us=micros(told["end"]),
        first_batch_us=micros(first) if first is not None else None,
        hosts=names_of(hosts, told["attempt"]),
        **{name: told[name] for name in same},
    )


def _phase(told: dict[str, Any], hosts: Hosts) -> PhaseRow:
    waited = told["behind_s"] > 0
    return PhaseRow(**told, last_host=hosts.get((told["attempt"], told["last_rank"])) if waited else None)


def _seg(row: tuple[object, ...]) -> dict[str, Any]:
    return dict(zip(("attempt", "stage", "component", "start_us", "end_us", "gpus"), row, strict=True))


def _joined(parts: list[Seg]) -> list[Seg]:
    """In order, and those whole again that were cut at hours."""
    found: list[Seg] = []
    for part in sorted(parts, key=lambda part: (part.start_us, part.end_us)):
        last = found[-1] if found else None
        if (
            last is not None
            and last.end_us == part.start_us
            and (last.attempt, last.stage, last.gpus) == (part.attempt, part.stage, part.gpus)
        ):
            found[-1] = last.model_copy(update={"end_us": part.end_us})
        else:
            found.append(part)
    return found


def _marks(store: Store, who: dict[str, object]) -> list[Mark]:
    """Moments of the job: first batches, ends of attempts, checkpoints that are safe."""
    within = "BETWEEN {since:Int64} AND {until:Int64}"
    rows = store.query(
        "SELECT at, attempt, kind, label FROM ("
        "SELECT toUnixTimestamp64Micro(assumeNotNull(first_batch)) AS at, attempt, 'first_batch' AS kind, "
        "'first batch' AS label FROM attempts WHERE job = {job:String} AND first_batch IS NOT NULL "
        "UNION ALL SELECT toUnixTimestamp64Micro(end) AS at, attempt, "
        "multiIf(outcome = 'failed', 'failure', outcome = 'preempted', 'preemption', 'end') AS kind, "
        "concat(ifNull(outcome, ''), if(cause IS NULL, '', concat(': ', cause))) AS label "
        "FROM attempts WHERE job = {job:String} AND NOT open "
        "UNION ALL SELECT toUnixTimestamp64Micro(ts) AS at, ifNull(attempt, 0) AS attempt, 'checkpoint' AS kind, "
        "'checkpoint' AS label FROM events WHERE job = {job:String} AND kind = 'checkpoint_durable'"
        f") WHERE at {within} ORDER BY kind = 'checkpoint', at LIMIT {MOST_PARTS + 1}",
        who,
    ).rows
    return [
        Mark(at_us=cast(int, at), attempt=cast(int, n), kind=str(kind), label=str(label)) for at, n, kind, label in rows
    ]
