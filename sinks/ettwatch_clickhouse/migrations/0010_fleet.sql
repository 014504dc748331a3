-- Views over the rollups, with names that stay: NAME_hourly and NAME_daily. Their figures are those of the views segments
-- and attempts, summed up. And views of what is looked at one by one: starts, failures, stragglers.

CREATE OR REPLACE VIEW fleet_hourly
(
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    hour,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_hours AS figures FINAL
WHERE figures.parts > 0
GROUP BY hour;

CREATE OR REPLACE VIEW team_hourly
(
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    team Nullable(String) COMMENT 'team whose jobs they are; NULL for none',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    hour, nullIf(toString(figures.team), '') AS team,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_hours AS figures FINAL
WHERE figures.parts > 0
GROUP BY hour, figures.team;

CREATE OR REPLACE VIEW model_hourly
(
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    model Nullable(String) COMMENT 'model that is trained; NULL for none',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    hour, nullIf(toString(figures.model), '') AS model,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_hours AS figures FINAL
WHERE figures.parts > 0
GROUP BY hour, figures.model;

CREATE OR REPLACE VIEW cluster_hourly
(
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    cluster Nullable(String) COMMENT 'cluster they run on; NULL for none',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    hour, nullIf(toString(figures.cluster), '') AS cluster,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_hours AS figures FINAL
WHERE figures.parts > 0
GROUP BY hour, figures.cluster;

CREATE OR REPLACE VIEW stage_hourly
(
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    team Nullable(String) COMMENT 'team whose jobs they are; NULL for none',
    model Nullable(String) COMMENT 'model that is trained; NULL for none',
    cluster Nullable(String) COMMENT 'cluster they run on; NULL for none',
    stage String COMMENT 'what the time is charged to: a component, a dotted sub-stage of one, or effective_training',
    component String COMMENT 'the component of the stage: its first dotted part; effective_training is its own',
    job_s Float64 COMMENT 'seconds of jobs',
    gpu_s Float64 COMMENT 'GPU-seconds'
)
AS SELECT
    hour, nullIf(toString(figures.team), '') AS team, nullIf(toString(figures.model), '') AS model,
    nullIf(toString(figures.cluster), '') AS cluster, s AS stage, substringIndex(s, '.', 1) AS component,
    u / 1000000 AS job_s, g / 1000000 AS gpu_s
FROM rollup_hours AS figures FINAL
ARRAY JOIN figures.stage AS s, figures.stage_us AS u, figures.stage_gpu_us AS g;

CREATE OR REPLACE VIEW fleet_daily
(
    day Date32 COMMENT 'the day, in UTC',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    day,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_days AS figures FINAL
WHERE figures.parts > 0
GROUP BY day;

CREATE OR REPLACE VIEW team_daily
(
    day Date32 COMMENT 'the day, in UTC',
    team Nullable(String) COMMENT 'team whose jobs they are; NULL for none',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    day, nullIf(toString(figures.team), '') AS team,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_days AS figures FINAL
WHERE figures.parts > 0
GROUP BY day, figures.team;

CREATE OR REPLACE VIEW model_daily
(
    day Date32 COMMENT 'the day, in UTC',
    model Nullable(String) COMMENT 'model that is trained; NULL for none',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    day, nullIf(toString(figures.model), '') AS model,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_days AS figures FINAL
WHERE figures.parts > 0
GROUP BY day, figures.model;

CREATE OR REPLACE VIEW cluster_daily
(
    day Date32 COMMENT 'the day, in UTC',
    cluster Nullable(String) COMMENT 'cluster they run on; NULL for none',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all; NULL where there is none',
    ett_pct_jobs Nullable(Float64) COMMENT 'the same without weighing by GPUs: each job counts alike',
    job_s Float64 COMMENT 'seconds of jobs, from t0 to t1',
    gpu_s Float64 COMMENT 'GPU-seconds of jobs, from t0 to t1',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_held_s Float64 COMMENT 'GPU-seconds without scheduling, which is waited for and not held',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    jobs UInt64 COMMENT 'jobs that had time in it',
    attempts UInt64 COMMENT 'attempts that began in it',
    starts UInt64 COMMENT 'first attempts that had their first batch in it',
    tts_p50_s Nullable(Float64) COMMENT 'their time to start in seconds, median',
    tts_p90_s Nullable(Float64) COMMENT 'their time to start in seconds, 90th percentile',
    tts_p99_s Nullable(Float64) COMMENT 'their time to start in seconds, 99th percentile',
    recoveries UInt64 COMMENT 'later attempts that had their first batch in it',
    ttr_p50_s Nullable(Float64) COMMENT 'their time to recover in seconds, median',
    ttr_p90_s Nullable(Float64) COMMENT 'their time to recover in seconds, 90th percentile',
    ttr_p99_s Nullable(Float64) COMMENT 'their time to recover in seconds, 99th percentile',
    nof UInt64 COMMENT 'failures: attempts that ended in it, failed or preempted',
    nof_infra UInt64 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt64 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures for each 1,000 GPU-hours that were held',
    mtbf_h Nullable(Float64) COMMENT 'mean time between failures of a job: hours that jobs held GPUs, for each failure',
    gpu_unsaved_s Float64 COMMENT 'GPU-seconds of work that failures discarded',
    causes Map(String, UInt64) COMMENT 'failures by cause; empty where nobody knows',
    tts_us Array(Int64) COMMENT 'each time to start, in microseconds',
    ttr_us Array(Int64) COMMENT 'each time to recover, in microseconds'
)
AS SELECT
    day, nullIf(toString(figures.cluster), '') AS cluster,
    100 * sum(figures.gpu_effective_us) / nullIf(sum(figures.gpu_us), 0) AS ett_pct,
    100 * sum(figures.effective_us) / nullIf(sum(figures.us), 0) AS ett_pct_jobs,
    sum(figures.us) / 1000000 AS job_s,
    sum(figures.gpu_us) / 1000000 AS gpu_s,
    sum(figures.gpu_effective_us) / 1000000 AS gpu_effective_s,
    (sum(figures.gpu_us) - sum(figures.gpu_effective_us)) / 1000000 AS gpu_lost_s,
    (sum(figures.gpu_us) - sum(figures.gpu_waited_us)) / 1000000 AS gpu_held_s,
    sum(figures.gpu_waited_us) / 1000000 AS gpu_waited_s,
    sum(figures.jobs) AS jobs,
    sum(figures.attempts) AS attempts,
    sum(length(figures.tts_us)) AS starts,
    quantileExactInclusiveOrNullArray(0.5)(figures.tts_us) / 1000000 AS tts_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.tts_us) / 1000000 AS tts_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.tts_us) / 1000000 AS tts_p99_s,
    sum(length(figures.ttr_us)) AS recoveries,
    quantileExactInclusiveOrNullArray(0.5)(figures.ttr_us) / 1000000 AS ttr_p50_s,
    quantileExactInclusiveOrNullArray(0.9)(figures.ttr_us) / 1000000 AS ttr_p90_s,
    quantileExactInclusiveOrNullArray(0.99)(figures.ttr_us) / 1000000 AS ttr_p99_s,
    sum(arraySum(figures.failures)) AS nof,
    sum(figures.infra) AS nof_infra,
    sum(figures.preempted) AS nof_preempted,
    3600000 * nof / nullIf(gpu_held_s, 0) AS nof_per_1000_gpu_h,
    (sum(figures.us) - sum(figures.waited_us)) / 3600000000 / nullIf(nof, 0) AS mtbf_h,
    sum(figures.unsaved_gpu_us) / 1000000 AS gpu_unsaved_s,
    CAST(sumMap(CAST(figures.cause, 'Array(String)'), arrayMap(x -> toUInt64(x), figures.failures)), 'Map(String, UInt64)') AS causes,
    groupArrayArray(figures.tts_us) AS tts_us,
    groupArrayArray(figures.ttr_us) AS ttr_us
FROM rollup_days AS figures FINAL
WHERE figures.parts > 0
GROUP BY day, figures.cluster;

CREATE OR REPLACE VIEW stage_daily
(
    day Date32 COMMENT 'the day, in UTC',
    team Nullable(String) COMMENT 'team whose jobs they are; NULL for none',
    model Nullable(String) COMMENT 'model that is trained; NULL for none',
    cluster Nullable(String) COMMENT 'cluster they run on; NULL for none',
    stage String COMMENT 'what the time is charged to: a component, a dotted sub-stage of one, or effective_training',
    component String COMMENT 'the component of the stage: its first dotted part; effective_training is its own',
    job_s Float64 COMMENT 'seconds of jobs',
    gpu_s Float64 COMMENT 'GPU-seconds'
)
AS SELECT
    day, nullIf(toString(figures.team), '') AS team, nullIf(toString(figures.model), '') AS model,
    nullIf(toString(figures.cluster), '') AS cluster, s AS stage, substringIndex(s, '.', 1) AS component,
    u / 1000000 AS job_s, g / 1000000 AS gpu_s
FROM rollup_days AS figures FINAL
ARRAY JOIN figures.stage AS s, figures.stage_us AS u, figures.stage_gpu_us AS g;

CREATE OR REPLACE VIEW job_hourly
(
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    job String COMMENT 'the training run',
    team Nullable(String) COMMENT 'team whose job it is',
    model Nullable(String) COMMENT 'model that is trained',
    cluster Nullable(String) COMMENT 'cluster it runs on',
    job_s Float64 COMMENT 'seconds of the job in the hour',
    gpu_s Float64 COMMENT 'GPU-seconds of the job in the hour',
    gpu_effective_s Float64 COMMENT 'GPU-seconds that consumed new data',
    gpu_lost_s Float64 COMMENT 'GPU-seconds that did not',
    gpu_waited_s Float64 COMMENT 'GPU-seconds of scheduling',
    ett_pct Nullable(Float64) COMMENT 'GPU time that consumed new data, in percent of all',
    stages Map(String, Float64) COMMENT 'GPU-seconds by stage',
    attempts UInt32 COMMENT 'attempts that began in the hour',
    nof UInt64 COMMENT 'attempts that ended in the hour, failed or preempted'
)
AS SELECT
    hour, job, nullIf(toString(figures.team), '') AS team, nullIf(toString(figures.model), '') AS model,
    nullIf(toString(figures.cluster), '') AS cluster,
    arraySum(figures.us) / 1000000 AS job_s, arraySum(figures.gpu_us) / 1000000 AS gpu_s,
    arraySum(arrayMap((s, x) -> if(s = 'effective_training', x, 0), figures.stage, figures.gpu_us)) / 1000000 AS gpu_effective_s,
    gpu_s - gpu_effective_s AS gpu_lost_s,
    arraySum(arrayMap((s, x) -> if(substringIndex(s, '.', 1) = 'scheduling', x, 0), figures.stage, figures.gpu_us)) / 1000000 AS gpu_waited_s,
    100 * gpu_effective_s / nullIf(gpu_s, 0) AS ett_pct,
    CAST((CAST(figures.stage, 'Array(String)'), arrayMap(x -> x / 1000000, figures.gpu_us)), 'Map(String, Float64)') AS stages,
    figures.attempts AS attempts, length(figures.cause) AS nof
FROM rollup_jobs AS figures FINAL
WHERE notEmpty(figures.stage) OR figures.attempts > 0 OR notEmpty(figures.cause);

CREATE OR REPLACE VIEW starts
(
    at DateTime64(6, 'UTC') COMMENT 'when the first batch was there',
    job String COMMENT 'the training run',
    attempt UInt32 COMMENT 'number of the attempt',
    kind String COMMENT 'start (attempt 0) or recovery (a later one)',
    seconds Float64 COMMENT 'time to start, or time to recover',
    team Nullable(String) COMMENT 'team whose job it is',
    model Nullable(String) COMMENT 'model that is trained',
    cluster Nullable(String) COMMENT 'cluster it runs on',
    gpus UInt32 COMMENT 'GPUs by which its time weighs',
    trigger Nullable(String) COMMENT 'why it was started: initial, failure, preemption, resize or manual',
    compiled_s Float64 COMMENT 'seconds of the attempt charged to pt2_compilation, in its loop as well',
    components Map(String, Float64) COMMENT 'seconds of the whole attempt by component',
    stages Map(String, Float64) COMMENT 'seconds of the whole attempt by stage'
)
AS SELECT
    assumeNotNull(first_batch) AS at, job, attempt, if(tts_us IS NOT NULL, 'start', 'recovery') AS kind,
    ifNull(ifNull(tts_us, ttr_us), 0) / 1000000 AS seconds, team, model, cluster, gpus, trigger,
    components['pt2_compilation'] AS compiled_s, components, stages
FROM attempts
ANY LEFT JOIN (SELECT job, team, model, cluster FROM jobs) AS told USING (job)
WHERE first_batch IS NOT NULL AND (tts_us IS NOT NULL OR ttr_us IS NOT NULL);

CREATE OR REPLACE VIEW failures
(
    at DateTime64(6, 'UTC') COMMENT 'when the attempt ended',
    job String COMMENT 'the training run',
    attempt UInt32 COMMENT 'number of the attempt',
    outcome String COMMENT 'failed or preempted',
    cause Nullable(String) COMMENT 'why it did not succeed',
    infra Bool COMMENT 'the cause is neither user_code nor config',
    exit_code Nullable(Int64) COMMENT 'exit code of the process',
    signal Nullable(UInt32) COMMENT 'number of the signal that killed the process',
    message Nullable(String) COMMENT 'what went wrong, in words',
    team Nullable(String) COMMENT 'team whose job it is',
    model Nullable(String) COMMENT 'model that is trained',
    cluster Nullable(String) COMMENT 'cluster it runs on',
    gpus UInt32 COMMENT 'GPUs by which its time weighs',
    trained Bool COMMENT 'the data position advanced before',
    duration_s Float64 COMMENT 'seconds from the begin of the attempt',
    effective_s Float64 COMMENT 'seconds of the attempt that consumed new data',
    unsaved_s Float64 COMMENT 'seconds of work that it discarded',
    gpu_unsaved_s Float64 COMMENT 'the same in GPU-seconds'
)
AS SELECT
    end AS at, job, attempt, assumeNotNull(outcome) AS outcome, cause, CAST(ifNull(cause, '') NOT IN ('user_code', 'config'), 'Bool') AS infra,
    exit_code, signal, message, team, model, cluster, gpus, trained, duration_s, effective_s,
    unsaved_s, unsaved_us * gpus / 1000000 AS gpu_unsaved_s
FROM attempts
ANY LEFT JOIN (SELECT job, team, model, cluster FROM jobs) AS told USING (job)
WHERE ifNull(outcome, '') IN ('failed', 'preempted');

CREATE OR REPLACE VIEW stragglers
(
    start DateTime64(6, 'UTC') COMMENT 'begin of the phase',
    end DateTime64(6, 'UTC') COMMENT 'when its last rank was through',
    job String COMMENT 'the training run',
    attempt UInt32 COMMENT 'number of the attempt',
    phase String COMMENT 'what was done',
    component String COMMENT 'the component of the phase',
    ranks UInt32 COMMENT 'how many ranks told it',
    last_rank UInt32 COMMENT 'the rank that the others waited for',
    behind_s Float64 COMMENT 'seconds by which it ended after the second last',
    charged_s Float64 COMMENT 'seconds charged to the phase',
    team Nullable(String) COMMENT 'team whose job it is',
    model Nullable(String) COMMENT 'model that is trained',
    cluster Nullable(String) COMMENT 'cluster it runs on'
)
AS SELECT start, end, job, attempt, phase, component, ranks, last_rank, behind_s, charged_s, team, model, cluster
FROM phases
ANY LEFT JOIN (SELECT job, team, model, cluster FROM jobs) AS told USING (job)
WHERE behind_us > 0;
