"""The statements that fill the rollups. SQL only."""

from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["DAYS", "HOURS", "Level", "fill_jobs", "fill_level", "stale_periods"]


class Level(NamedTuple):
    """A table that sums up jobs by a period.

    Attributes:
        table: Its name.
        key: The column of the period.
        of_hour: The period of an hour.
        number: The period as an integer.
        seconds: Its length.
    """

    table: str
    key: str
    of_hour: str
    number: str
    seconds: int


HOURS: Final = Level("rollup_hours", "hour", "hour", "intDiv(toInt64({}), 3600)", 3_600)
DAYS: Final = Level("rollup_days", "day", "toDate32(hour)", "toInt32({})", 86_400)

# One insert is one block, and so comes into sight as a whole; it may span any number of months.
_SETTINGS: Final = (
    "SETTINGS max_partitions_per_insert_block = 0, min_insert_block_size_rows = 10000000, "
    "min_insert_block_size_bytes = 10000000000, max_insert_threads = 1"
)
_TEXTS: Final = "CAST([], 'Array(String)')"
_NUMBERS: Final = "CAST([], 'Array(Int64)')"


def fill_jobs(page: str, stale: str, made: int) -> list[str]:
    """Return the statements that make hours of jobs anew: those that are wanted, and those that are not any more.

    Args:
        page: The condition for the jobs.
        stale: The condition for the hours that may be made anew, the page in it.
        made: Number of the write.
    """
    due = f"SELECT job, hour FROM rollup_jobs_stale WHERE {stale}"
    columns = (
        "source, team, model, cluster, stage, us, gpu_us, attempts, tts_us, ttr_us, cause, infra, preempted, "
        "unsaved_gpu_us"
    )
    return [
        f"INSERT INTO rollup_jobs (hour, job, made, {columns}) SELECT hour, job, {made}, {columns} "
        f"FROM rollup_jobs_truth WHERE {page} AND (job, hour) IN ({due} AND wanted != 0) {_SETTINGS}",
        # What is left out is zero, or empty.
        f"INSERT INTO rollup_jobs (hour, job, made) SELECT hour, job, {made} "
        f"FROM rollup_jobs_stale WHERE {stale} AND wanted = 0 {_SETTINGS}",
    ]


def stale_periods(level: Level, since: int) -> str:
    """Return the query for the periods that are not what they have to be, the newest first: number, rows of jobs in it.

    Args:
        level: Of which table.
        since: Only those of which a job was made anew by a write with at least this number; 0 for all.
    """
    key, of_hour = level.key, level.of_hour
    late = f"SELECT {of_hour} FROM rollup_jobs WHERE made >= {since}"
    of_jobs = f" AND {of_hour} IN ({late})" if since > 0 else ""
    of_level = f" WHERE {key} IN ({late})" if since > 0 else ""
    return (
        f"SELECT {level.number.format('period')} AS number, sum(parts) FROM ("
        f"SELECT {of_hour} AS period, count() AS parts, sum(cityHash64(job, hour, source)) AS wanted, "
        f"0 AS low, 0 AS high "
        f"FROM rollup_jobs FINAL WHERE source != 0{of_jobs} GROUP BY period UNION ALL "
        f"SELECT {key} AS period, 0 AS parts, 0 AS wanted, min(source) AS low, max(source) AS high "
        f"FROM {level.table} FINAL{of_level} GROUP BY period"
        ") GROUP BY period HAVING sum(wanted) != sum(low) OR sum(wanted) != sum(high) ORDER BY number DESC"
    )


def fill_level(level: Level, periods: Sequence[int], made: int) -> str:
    """Return the statement that makes periods anew; what is there and has no job any more becomes zeros.

    Args:
        level: Of which table.
        periods: Their numbers.
        made: Number of the write.
    """
    key, table = level.key, level.table
    first, end = min(periods) * level.seconds, (max(periods) + 1) * level.seconds
    numbers = ", ".join(str(number) for number in periods)
    hours = (
        f"hour >= fromUnixTimestamp64Second({first}, 'UTC') AND hour < fromUnixTimestamp64Second({end}, 'UTC') "
        f"AND {level.number.format(level.of_hour)} IN ({numbers})"
    )
    return f"""
INSERT INTO {table} (
    {key}, team, model, cluster, made, source, parts, jobs, us, effective_us, waited_us,
    gpu_us, gpu_effective_us, gpu_waited_us, stage, stage_us, stage_gpu_us,
    attempts, tts_us, ttr_us, cause, failures, infra, preempted, unsaved_gpu_us
)
SELECT
    period, team, model, cluster, {made}, sum(hash) OVER (PARTITION BY period), parts, jobs,
    arraySum(stages.2), arraySum(arrayMap((s, x) -> if(s = 'effective_training', x, 0), stages.1, stages.2)),
    arraySum(arrayMap((s, x) -> if(substringIndex(s, '.', 1) = 'scheduling', x, 0), stages.1, stages.2)),
    arraySum(stages.3), arraySum(arrayMap((s, x) -> if(s = 'effective_training', x, 0), stages.1, stages.3)),
    arraySum(arrayMap((s, x) -> if(substringIndex(s, '.', 1) = 'scheduling', x, 0), stages.1, stages.3)),
    stages.1, stages.2, stages.3, attempts, tts_us, ttr_us, causes.1, causes.2, infra, preempted, unsaved_gpu_us
FROM (
    SELECT
        period, team, model, cluster, sum(hash) AS hash, countIf(has_any) AS parts,
        uniqExactIf(job, notEmpty(stage)) AS jobs, sumMap(stage, us, gpu_us) AS stages, sum(attempts) AS attempts,
        arraySort(groupArrayArray(tts_us)) AS tts_us, arraySort(groupArrayArray(ttr_us)) AS ttr_us,
        sumMap(cause, arrayMap(c -> toUInt64(1), cause)) AS causes, sum(infra) AS infra, sum(preempted) AS preempted,
        sum(unsaved_gpu_us) AS unsaved_gpu_us
    FROM (
        SELECT
            {level.of_hour} AS period, toString(team) AS team, toString(model) AS model, toString(cluster) AS cluster,
            cityHash64(job, hour, source) AS hash, job, CAST(stage, 'Array(String)') AS stage, us, gpu_us, attempts,
            tts_us, ttr_us, CAST(cause, 'Array(String)') AS cause, infra, preempted, unsaved_gpu_us,
            attempts > 0 OR notEmpty(stage) OR notEmpty(tts_us) OR notEmpty(ttr_us) OR notEmpty(cause) AS has_any
        FROM rollup_jobs FINAL
        WHERE source != 0 AND {hours}
        UNION ALL
        SELECT DISTINCT
            {key}, toString(team), toString(model), toString(cluster), 0, '', {_TEXTS}, {_NUMBERS}, {_NUMBERS}, 0,
            {_NUMBERS}, {_NUMBERS}, {_TEXTS}, 0, 0, 0, false
        FROM {table}
        WHERE {level.number.format(key)} IN ({numbers})
    )
    GROUP BY period, team, model, cluster
)
{_SETTINGS}"""
