"""A fleet of any size, made by SQL inside the engine: jobs, attempts, hours with their segments, phases, corrections.

Thirteen weeks; 12 teams with 8 models each, every model on two of six clusters; jobs of 8 to 256 GPUs whose lengths are
spread exponentially around 18 hours; a new attempt every 12 hours. An hour of training has 19 gaps of data stall and
effective time and 4 saves; the first hour of an attempt begins with nine stages of start-up, the last one of a job ends
with publishing. Everything is drawn from hashes of numbers, so that a fleet of one size is always the same.
"""

from typing import Final

from ettwatch_clickhouse import Store

__all__ = ["BEGIN", "HOURS", "OWNERS", "fill"]

BEGIN: Final = 1_783_296_000
"""2026-07-06, a Monday, in seconds since the Unix epoch."""

HOURS: Final = 13 * 7 * 24

_JOBS_AT_ONCE: Final = 4_000

_JOBS: Final = """
SELECT
    number AS n, concat('job-', leftPad(toString(n), 8, '0')) AS job,
    cityHash64(n, 'team') % 12 AS t, concat('team-', toString(t)) AS team,
    concat('model-', toString(t * 8 + cityHash64(n, 'model') % 8)) AS model,
    concat('c', toString((cityHash64(model) + cityHash64(n, 'cluster') % 2) % 6)) AS cluster,
    toUInt32(exp2(3 + cityHash64(n, 'gpus') % 6)) AS gpus,
    toUInt32(least(400, 1 + floor(-18 * log((cityHash64(n, 'length') % 999983 + 1) / 999984)))) AS hours,
    {origin} + 3600 * (cityHash64(n, 'begin') % {hours}) AS begin,
    toUInt32(ceil(hours / 12)) AS attempts,
    120 + cityHash64(n, 'queue') % 480 AS queue_s, 300 + toUInt32(exp(3 + 3 * (cityHash64(n,
        'tts') % 9973) / 9973)) AS start_s
FROM numbers({first}, {count})
"""

_STARTUP: Final = (
    ("hardware_setup.image_pull", 3),
    ("hardware_setup", 2),
    ("trainer_init.device_init", 1),
    ("trainer_init.process_group_init", 3),
    ("trainer_init.train_module_creation", 3),
    ("trainer_init.get_first_batch_data", 4),
    ("pt2_compilation.dynamo", 2),
    ("pt2_compilation.inductor", 6),
)
_PARTS: Final = sum(parts for _, parts in _STARTUP)
_NAMES: Final = ", ".join(f"'{name}'" for name, _ in _STARTUP)
_SHARES: Final = ", ".join(str(parts) for _, parts in _STARTUP)

_CELLS: Final = f"""
INSERT INTO segments_log (job, cell, version, written, attempt, stage, start_us, length_us, gpus)
SELECT
    job, fromUnixTimestamp64Second(toInt64(begin + 3600 * k), 'UTC') AS cell,
    bitShiftLeft(toUInt64({{round}} + 1), 40) + k AS version,
    (begin + 3600 * k) * 1000000 + {{round}} AS written,
    arrayMap(x -> intDiv(k, 12), stage) AS attempt,
    arrayConcat(
        k % 12 = 0 ? arrayPushFront([{_NAMES}], 'scheduling.queue_wait') : [],
        arrayFlatten(arrayMap(
            i -> i % 5 = 4 ? ['wasted_training.data_stall', 'effective_training', 'wasted_training.checkpoint_save']
                : ['wasted_training.data_stall', 'effective_training'], range({{gaps}}))),
        k = hours - 1 ? ['shutdown.model_publish', 'shutdown'] : []
    ) AS stage,
    arrayMap(e -> toUInt32(intDiv(e * 3600000000, total)), arrayPushFront(arrayPopBack(ends), 0)) AS start_us,
    arrayMap((b, e) -> toUInt32(intDiv(e * 3600000000, total) - intDiv(b * 3600000000, total)),
        arrayPushFront(arrayPopBack(ends), 0), ends) AS length_us,
    arrayMap(x -> gpus, stage) AS gpus
FROM (
    SELECT
        *, arrayJoin(range(hours)) AS k,
        arrayConcat(
            k % 12 = 0 ? arrayConcat([toUInt64(queue_s * 1000)],
                arrayMap(x -> toUInt64(x * intDiv(start_s * 1000, {_PARTS})), [{_SHARES}])) : [],
            arrayFlatten(arrayMap(
                i -> i % 5 = 4 ? [cityHash64(n, k, i, {{round}}) % 9000 + 100, 150000 + cityHash64(n, k, i,
                    1) % 20000, 2000 + cityHash64(n, k, i, 2) % 6000]
                    : [cityHash64(n, k, i, {{round}}) % 9000 + 100, 150000 + cityHash64(n, k, i, 1) % 20000],
                        range({{gaps}}))),
            k = hours - 1 ? [toUInt64(600000), toUInt64(20000)] : []
        ) AS weights,
        arrayMap(x -> toUInt64(x), arrayCumSum(weights)) AS ends, ends[-1] AS total
    FROM ({_JOBS})
    WHERE {{which}}
)
"""

_ATTEMPTS: Final = f"""
INSERT INTO attempts_log (job, attempt, version, written, final, gone, start, end, open, outcome, cause, gpus,
    world_size,
    trained, first_batch, tts_us, ttr_us, recovery_us, effective_us, unsaved_us, components_us, stages_us)
SELECT
    job, a, 1, begin * 1000000, true, false,
    fromUnixTimestamp64Micro(toInt64(begin + 43200 * a) * 1000000, 'UTC'),
    fromUnixTimestamp64Micro(toInt64(begin + 3600 * least(hours, 12 * (a + 1))) * 1000000 - 1, 'UTC'), false,
    a = attempts - 1 ? 'succeeded' : 'failed',
    a = attempts - 1 ? NULL : ['hardware', 'network', 'storage', 'gpu_memory', 'user_code', 'timeout',
        'capacity'][1 + cityHash64(n, a) % 7],
    gpus, gpus, true,
    fromUnixTimestamp64Micro(toInt64(begin + 43200 * a + queue_s + start_s) * 1000000, 'UTC') AS first_batch,
    a = 0 ? toInt64(start_s) * 1000000 : NULL, a > 0 ? toInt64(start_s + queue_s) * 1000000 : NULL,
    a > 0 ? toInt64(start_s + queue_s) * 1000000 : 0, 36000000000, cityHash64(n, a, 'lost') % 900000000,
    map('scheduling', 0, 'hardware_setup', 0, 'trainer_init', 0, 'pt2_compilation', 0, 'wasted_training', 0,
        'shutdown', 0),
    map('effective_training', 36000000000)
FROM (SELECT *, arrayJoin(range(attempts)) AS a FROM ({_JOBS}))
"""

_JOB_ROWS: Final = f"""
INSERT INTO jobs_log (job, version, written, rules_version, team, model, cluster, status, attempts, gpus, t0, t1,
    e2e_us,
    effective_us, ett_pct, tts_us, recovery_us, nof, nof_infra, nof_preempted, unsaved_us, gpu_effective_s,
        gpu_e2e_s, gpu_held_s)
SELECT
    job, 1, begin * 1000000, '1', team, model, cluster,
        begin + 3600 * hours > {{over}} ? 'training' : 'succeeded',
    attempts, gpus, fromUnixTimestamp64Micro(toInt64(begin) * 1000000, 'UTC'),
    fromUnixTimestamp64Micro(toInt64(begin + 3600 * hours) * 1000000, 'UTC'), 3600000000 * hours, 3000000000 * hours,
    250 / 3, toInt64(start_s) * 1000000, 0, attempts - 1, attempts - 1, 0, 0, 3000 * hours * gpus,
        3600 * hours * gpus, 3500 * hours * gpus
FROM ({_JOBS})
"""

_PHASES: Final = f"""
INSERT INTO phases_log (job, attempt, phase, background, of_rank, start, version, written, final, gone, end,
    ranks, container,
    charged_us, hidden_us, last_rank, behind_us, open)
SELECT
    job, a, phase, false, 0, fromUnixTimestamp64Micro(toInt64(begin + 43200 * a + queue_s) * 1000000,
        'UTC') AS start, 1,
    begin * 1000000, true, false, start + toIntervalSecond(60), gpus, false, 60000000, 0, cityHash64(n, a,
        phase) % gpus,
    cityHash64(n, a, phase, 1) % 5000000, false
FROM (
    SELECT *, arrayJoin(range(attempts)) AS a, arrayJoin(['trainer_init.process_group_init',
        'trainer_init.device_init', 'pt2_compilation']) AS phase
    FROM ({_JOBS})
)
"""

OWNERS: Final = (
    ("hardware_setup", "", "", "launcher", "platform", "#platform"),
    ("trainer_init", "", "", "trainer", "training", "#training"),
    ("trainer_init.get_first_batch_data", "", "", "reader", "data", "#data"),
    ("pt2_compilation", "", "", "compiler", "compilers", "#compilers"),
    ("wasted_training", "", "", "trainer", "training", "#training"),
    ("wasted_training.checkpoint_save", "", "", "storage", "storage", "#storage"),
    ("wasted_training.data_stall", "", "", "reader", "data", "#data"),
    ("shutdown", "", "", "trainer", "training", "#training"),
    ("shutdown.model_publish", "", "", "publisher", "serving", "#serving"),
    ("scheduling", "", "", "scheduler", "platform", "#platform"),
    ("scheduling", "c1", "", "scheduler", "platform-c1", "#platform-c1"),
)
"""Stage, cluster, model, system, team, contact."""


def fill(store: Store, segments: int, *, jobs: int = 0, begin: int = BEGIN, hours: int = HOURS, gaps: int = 19) -> None:
    """Fill the tables until there are so many segments, and jobs.

    Args:
        store: With all migrations applied, and nothing in them.
        segments: How many there have to be at least; some of their hours are told twice or three times.
        jobs: How many there have to be at least.
        begin: When the first ones begin (s since the Unix epoch).
        hours: Within how many hours they begin.
        gaps: Gaps of data stall in an hour of training.
    """
    first, found = 0, 0
    span = {"origin": begin, "hours": hours, "over": begin + 3600 * hours, "gaps": gaps}
    while found < segments or first < jobs:
        part = {"first": first, "count": _JOBS_AT_ONCE} | span
        # What was told first, then corrections: of one hour in twelve, and of one in a hundred once more.
        for round_, which in ((0, "1"), (1, "cityHash64(n, k) % 12 = 0"), (2, "cityHash64(n, k) % 96 = 0")):
            store.command(_CELLS.format(**part, round=round_, which=which))
        for sql in (_ATTEMPTS, _PHASES, _JOB_ROWS):
            store.command(sql.format(**part))
        first += _JOBS_AT_ONCE
        told = "SELECT sum(length(stage)) FROM segments_log WHERE bitShiftRight(version, 40) = 1"
        ((count,),) = store.query(told).rows
        assert isinstance(count, int)
        found = count
