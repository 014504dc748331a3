-- Rollups: what the views of segments and attempts say, summed up by hours and days. A row that is made anew, after a
-- correction or because a job goes on, replaces the one before it, so that nothing is added twice and nothing has to be
-- taken back. A key that is no more has a row of zeros.
CREATE TABLE IF NOT EXISTS rollup_jobs
(
    hour DateTime64(0, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'begin of the hour',
    job String CODEC(ZSTD(1)) COMMENT 'the training run',
    made UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'number of the write: of rows with one key the greatest counts',
    source UInt64 COMMENT 'hash of what the row was made from; 0 for a row that is no more',
    team LowCardinality(String) COMMENT 'team whose job it is; empty for none',
    model LowCardinality(String) COMMENT 'model that is trained; empty for none',
    cluster LowCardinality(String) COMMENT 'cluster it runs on; empty for none',
    stage Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'the stages, in order',
    us Array(Int64) CODEC(ZSTD(1)) COMMENT 'of each stage: microseconds',
    gpu_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'of each stage: GPU-microseconds',
    attempts UInt32 COMMENT 'attempts that began',
    tts_us Array(Int64) COMMENT 'time to start, if it is the first attempt that had its first batch',
    ttr_us Array(Int64) COMMENT 'time to recover of each later attempt that had its first batch, in order',
    cause Array(LowCardinality(String)) COMMENT 'of each failure: why, in order; empty where nobody knows',
    infra UInt32 COMMENT 'failures without the causes user_code and config',
    preempted UInt32 COMMENT 'failures that are preemptions',
    unsaved_gpu_us Int64 COMMENT 'GPU-microseconds of work that failures discarded'
)
ENGINE = ReplacingMergeTree(made)
PARTITION BY toYYYYMM(hour)
ORDER BY (hour, job)
COMMENT 'jobs by hour; ask the view job_hourly';

CREATE TABLE IF NOT EXISTS rollup_hours
(
    hour DateTime64(0, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'begin of the hour',
    team LowCardinality(String) COMMENT 'team whose jobs they are; empty for none',
    model LowCardinality(String) COMMENT 'model that is trained; empty for none',
    cluster LowCardinality(String) COMMENT 'cluster they run on; empty for none',
    made UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'number of the write: of rows with one key the greatest counts',
    source UInt64 COMMENT 'hash of what the hour was made from, in all rows of the hour alike',
    parts UInt32 COMMENT 'hours of jobs that the row was made from; 0 for a row that is no more',
    jobs UInt32 COMMENT 'jobs that had time in the hour',
    us Int64 COMMENT 'time of jobs in microseconds',
    effective_us Int64 COMMENT 'of it, time that consumed new data',
    waited_us Int64 COMMENT 'of it, scheduling',
    gpu_us Int64 COMMENT 'time of jobs in GPU-microseconds',
    gpu_effective_us Int64 COMMENT 'of it, time that consumed new data',
    gpu_waited_us Int64 COMMENT 'of it, scheduling',
    stage Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'the stages, in order',
    stage_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'of each stage: microseconds',
    stage_gpu_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'of each stage: GPU-microseconds',
    attempts UInt32 COMMENT 'attempts that began',
    tts_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'time to start of each first attempt that had its first batch, in order',
    ttr_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'time to recover of each later attempt that had its first batch, in order',
    cause Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'the causes of failures, in order; empty where nobody knows',
    failures Array(UInt32) CODEC(ZSTD(1)) COMMENT 'of each cause: attempts that failed or were preempted',
    infra UInt32 COMMENT 'failures without the causes user_code and config',
    preempted UInt32 COMMENT 'failures that are preemptions',
    unsaved_gpu_us Int64 COMMENT 'GPU-microseconds of work that failures discarded'
)
ENGINE = ReplacingMergeTree(made)
PARTITION BY toYear(hour)
ORDER BY (hour, team, model, cluster)
COMMENT 'the fleet by hour; ask the views that end in _hourly';

CREATE TABLE IF NOT EXISTS rollup_days
(
    day Date32 CODEC(Delta, ZSTD(1)) COMMENT 'the day, in UTC',
    team LowCardinality(String) COMMENT 'team whose jobs they are; empty for none',
    model LowCardinality(String) COMMENT 'model that is trained; empty for none',
    cluster LowCardinality(String) COMMENT 'cluster they run on; empty for none',
    made UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'number of the write: of rows with one key the greatest counts',
    source UInt64 COMMENT 'hash of what the day was made from, in all rows of the day alike',
    parts UInt32 COMMENT 'hours of jobs that the row was made from; 0 for a row that is no more',
    jobs UInt32 COMMENT 'jobs that had time in the day',
    us Int64 COMMENT 'time of jobs in microseconds',
    effective_us Int64 COMMENT 'of it, time that consumed new data',
    waited_us Int64 COMMENT 'of it, scheduling',
    gpu_us Int64 COMMENT 'time of jobs in GPU-microseconds',
    gpu_effective_us Int64 COMMENT 'of it, time that consumed new data',
    gpu_waited_us Int64 COMMENT 'of it, scheduling',
    stage Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'the stages, in order',
    stage_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'of each stage: microseconds',
    stage_gpu_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'of each stage: GPU-microseconds',
    attempts UInt32 COMMENT 'attempts that began',
    tts_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'time to start of each first attempt that had its first batch, in order',
    ttr_us Array(Int64) CODEC(ZSTD(1)) COMMENT 'time to recover of each later attempt that had its first batch, in order',
    cause Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'the causes of failures, in order; empty where nobody knows',
    failures Array(UInt32) CODEC(ZSTD(1)) COMMENT 'of each cause: attempts that failed or were preempted',
    infra UInt32 COMMENT 'failures without the causes user_code and config',
    preempted UInt32 COMMENT 'failures that are preemptions',
    unsaved_gpu_us Int64 COMMENT 'GPU-microseconds of work that failures discarded'
)
ENGINE = ReplacingMergeTree(made)
PARTITION BY toYear(day)
ORDER BY (day, team, model, cluster)
COMMENT 'the fleet by day; ask the views that end in _daily';

-- What happened to attempts, by the hour: they began, they had their first batch, they failed.
CREATE OR REPLACE VIEW rollup_moments
(
    job String COMMENT 'the training run',
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    source UInt64 COMMENT 'hash of what is told',
    attempts UInt32 COMMENT 'attempts that began',
    tts_us Array(Int64) COMMENT 'time to start of first attempts that had their first batch',
    ttr_us Array(Int64) COMMENT 'time to recover of later attempts that had their first batch',
    cause Array(String) COMMENT 'of each failure: why; empty where nobody knows',
    infra UInt32 COMMENT 'failures without the causes user_code and config',
    preempted UInt32 COMMENT 'failures that are preemptions',
    unsaved_gpu_us Int64 COMMENT 'GPU-microseconds of work that failures discarded'
)
AS SELECT
    job,
    fromUnixTimestamp64Second(intDiv(toUnixTimestamp64Micro(moment.2), 3600000000) * 3600, 'UTC') AS hour,
    sum(cityHash64(told.attempt, moment.1, told.gpus, told.unsaved_us, ifNull(told.tts_us, -1), ifNull(told.ttr_us, -1), ifNull(told.outcome, ''), ifNull(told.cause, ''))) AS source,
    countIf(moment.1 = 1) AS attempts,
    arraySort(groupArrayIf(assumeNotNull(told.tts_us), moment.1 = 2 AND told.tts_us IS NOT NULL)) AS tts_us,
    arraySort(groupArrayIf(assumeNotNull(told.ttr_us), moment.1 = 2 AND told.ttr_us IS NOT NULL)) AS ttr_us,
    arraySort(groupArrayIf(ifNull(told.cause, ''), moment.1 = 3)) AS cause,
    countIf(moment.1 = 3 AND ifNull(told.cause, '') NOT IN ('user_code', 'config')) AS infra,
    countIf(moment.1 = 3 AND ifNull(told.outcome, '') = 'preempted') AS preempted,
    sumIf(told.unsaved_us * told.gpus, moment.1 = 3) AS unsaved_gpu_us
FROM attempts AS told
ARRAY JOIN [(1, start), (2, ifNull(first_batch, start)), (3, end)] AS moment
WHERE moment.1 = 1
    OR (moment.1 = 2 AND told.first_batch IS NOT NULL AND (told.tts_us IS NOT NULL OR told.ttr_us IS NOT NULL))
    OR (moment.1 = 3 AND ifNull(told.outcome, '') IN ('failed', 'preempted'))
GROUP BY job, hour;

-- What rollup_jobs has to hold, and the hash of what that is made from. Both come from one read of each row: a row that
-- changes meanwhile leaves another hash, and is made anew the next time.
CREATE OR REPLACE VIEW rollup_jobs_truth
(
    job String COMMENT 'the training run',
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    source UInt64 COMMENT 'hash of what the row is made from',
    team String COMMENT 'team whose job it is; empty for none',
    model String COMMENT 'model that is trained; empty for none',
    cluster String COMMENT 'cluster it runs on; empty for none',
    stage Array(String) COMMENT 'stages',
    us Array(Int64) COMMENT 'microseconds of each stage',
    gpu_us Array(Int64) COMMENT 'GPU-microseconds of each stage',
    attempts UInt32 COMMENT 'attempts that began',
    tts_us Array(Int64) COMMENT 'time to start of first attempts that had their first batch',
    ttr_us Array(Int64) COMMENT 'time to recover of later attempts that had their first batch',
    cause Array(String) COMMENT 'of each failure: why; empty where nobody knows',
    infra UInt32 COMMENT 'failures without the causes user_code and config',
    preempted UInt32 COMMENT 'failures that are preemptions',
    unsaved_gpu_us Int64 COMMENT 'GPU-microseconds of work that failures discarded'
)
AS SELECT
    job, hour, cityHash64(parts, attributes) AS source, team, model, cluster,
    stages.1 AS stage, stages.2 AS us, stages.3 AS gpu_us,
    attempts, tts_us, ttr_us, cause, infra, preempted, unsaved_gpu_us
FROM (
    SELECT
        job, hour, sum(source) AS parts, sumMap(stage, us, gpu_us) AS stages, sum(attempts) AS attempts,
        groupArrayArray(tts_us) AS tts_us, groupArrayArray(ttr_us) AS ttr_us, groupArrayArray(cause) AS cause,
        sum(infra) AS infra, sum(preempted) AS preempted, sum(unsaved_gpu_us) AS unsaved_gpu_us
    FROM (
        SELECT
            job, cell AS hour, cityHash64(ver) AS source,
            CAST(segments_log.stage, 'Array(String)') AS stage,
            arrayMap(l -> toInt64(l), length_us) AS us,
            arrayMap((l, g) -> toInt64(l) * g, length_us, gpus) AS gpu_us,
            0 AS attempts, CAST([], 'Array(Int64)') AS tts_us, CAST([], 'Array(Int64)') AS ttr_us,
            CAST([], 'Array(String)') AS cause, 0 AS infra, 0 AS preempted, toInt64(0) AS unsaved_gpu_us
        FROM segments_log
        ANY INNER JOIN (SELECT job, cell, max(ver) AS ver FROM segments_log GROUP BY job, cell SETTINGS optimize_aggregation_in_order = 1) AS latest USING (job, cell, ver)
        UNION ALL
        SELECT
            job, hour, source, CAST([], 'Array(String)'), CAST([], 'Array(Int64)'), CAST([], 'Array(Int64)'),
            attempts, tts_us, ttr_us, cause, infra, preempted, unsaved_gpu_us
        FROM rollup_moments
    )
    GROUP BY job, hour
) AS sums
LEFT JOIN (
    SELECT
        job, cityHash64(ifNull(jobs.team, ''), ifNull(jobs.model, ''), ifNull(jobs.cluster, '')) AS attributes,
        ifNull(jobs.team, '') AS team, ifNull(jobs.model, '') AS model, ifNull(jobs.cluster, '') AS cluster
    FROM jobs
) AS told USING (job);

-- The same hashes without the rest, which is quick.
CREATE OR REPLACE VIEW rollup_jobs_source
(
    job String COMMENT 'the training run',
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    source UInt64 COMMENT 'hash of what the row of the hour has to be made from'
)
AS SELECT job, hour, cityHash64(parts, attributes) AS source
FROM (
    SELECT job, hour, sum(source) AS parts
    FROM (
        SELECT job, cell AS hour, cityHash64(max(ver)) AS source
        FROM segments_log
        GROUP BY job, cell
        SETTINGS optimize_aggregation_in_order = 1
        UNION ALL
        SELECT job, hour, source FROM rollup_moments
    )
    GROUP BY job, hour
) AS sums
LEFT JOIN (
    SELECT job, cityHash64(ifNull(team, ''), ifNull(model, ''), ifNull(cluster, '')) AS attributes FROM jobs
) AS told USING (job);

-- Which rows of rollup_jobs are not what they have to be.
CREATE OR REPLACE VIEW rollup_jobs_stale
(
    job String COMMENT 'the training run',
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    wanted UInt64 COMMENT 'hash of what the row has to be made from; 0 if there has to be none',
    held UInt64 COMMENT 'hash of what it is made from; 0 if there is none'
)
AS SELECT job, hour, sumIf(source, side = 1) AS wanted, sumIf(source, side = 2) AS held
FROM (
    SELECT job, hour, source, 1 AS side FROM rollup_jobs_source
    UNION ALL
    SELECT job, hour, source, 2 AS side FROM rollup_jobs FINAL
)
GROUP BY job, hour
HAVING wanted != held;

-- When something of a job was written last.
CREATE OR REPLACE VIEW rollup_written
(
    job String COMMENT 'the training run',
    written UInt64 COMMENT 'number of the write'
)
AS SELECT job, written FROM segments_log
UNION ALL
SELECT job, written FROM attempts_log
UNION ALL
SELECT job, written FROM jobs_log;
