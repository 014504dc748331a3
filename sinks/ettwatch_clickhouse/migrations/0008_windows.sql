-- Rolling windows: one row for each scope, name, length and end. A later version replaces the row. Rows are many, for a
-- window ends on every minute; they go after 90 days, and what was lost when is in the segments for as long as those stay.
CREATE TABLE IF NOT EXISTS windows_log
(
    scope LowCardinality(String) COMMENT 'what it is about: fleet, team, model, cluster or owner',
    name String COMMENT 'which one; empty for the fleet, and where jobs do not say, or nobody owns a stage',
    length LowCardinality(String) COMMENT 'how long it is, as the setting has it: 1h, 24h, 7d',
    end DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'end of the window; the first moment that is not in it',
    version UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'rises with every time that the window is published',
    written UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'number of the write: rises, and is about the time in microseconds since the Unix epoch',
    ver UInt128 MATERIALIZED bitShiftLeft(toUInt128(version), 64) + written CODEC(ZSTD(1)) COMMENT 'version, then written: of rows with one key the greatest counts',
    start DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'begin of the window',
    as_of DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'when it was made',
    heard UInt32 COMMENT 'how many partitions of the jobs had told all up to the end',
    parts UInt32 COMMENT 'how many partitions there are',
    e2e_s Float64 CODEC(ZSTD(1)) COMMENT 'seconds of jobs in the window; for an owner those of all jobs',
    effective_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'seconds that consumed new data; NULL for an owner',
    lost_s Float64 CODEC(ZSTD(1)) COMMENT 'seconds lost; for an owner in its stages alone',
    ett_pct_unweighted Nullable(Float64) CODEC(ZSTD(1)) COMMENT '100 * effective_s / e2e_s; NULL for an owner, or without e2e_s',
    gpu_e2e_s Float64 CODEC(ZSTD(1)) COMMENT 'GPU-seconds of jobs in the window; for an owner those of all jobs',
    gpu_effective_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'GPU-seconds that consumed new data; NULL for an owner',
    gpu_lost_s Float64 CODEC(ZSTD(1)) COMMENT 'GPU-seconds lost; for an owner in its stages alone',
    gpu_held_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'GPU-seconds without scheduling; NULL for an owner',
    gpu_waited_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'GPU-seconds of scheduling: waited for, not held; NULL for an owner',
    ett_pct Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'effective training time in percent: 100 * gpu_effective_s / gpu_e2e_s; NULL for an owner, or without gpu_e2e_s',
    lost_pct Nullable(Float64) CODEC(ZSTD(1)) COMMENT '100 * gpu_lost_s / gpu_e2e_s; NULL where gpu_e2e_s is 0',
    components Map(LowCardinality(String), Float64) CODEC(ZSTD(1)) COMMENT 'GPU-seconds lost to each component, always all six',
    stages Map(LowCardinality(String), Float64) CODEC(ZSTD(1)) COMMENT 'GPU-seconds lost by stage, none that is 0',
    tts_count UInt32 COMMENT 'jobs whose first batch falls into the window',
    tts_p50_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'median of their times to start, right within 1 %; NULL without any',
    tts_p90_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'nine in ten started in that time or less',
    tts_p99_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT '99 in 100 started in that time or less',
    ttr_count UInt32 COMMENT 'recoveries whose first batch falls into the window',
    ttr_p50_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'median of their times to recover, right within 1 %; NULL without any',
    ttr_p90_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'nine in ten recovered in that time or less',
    ttr_p99_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT '99 in 100 recovered in that time or less',
    nof UInt32 COMMENT 'failures: attempts that failed or were preempted, and ended in the window',
    nof_infra UInt32 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt32 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'failures per 1000 GPU-hours held; NULL where none were',
    mtbf_s Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'seconds that jobs held GPUs, per failure; NULL without failures',
    live Map(LowCardinality(String), UInt32) CODEC(ZSTD(1)) COMMENT 'live jobs at the end of the window, by status, none that is 0'
)
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMM(end)
ORDER BY (scope, name, length, end)
TTL toDateTime(end) + toIntervalDay(90)
SETTINGS non_replicated_deduplication_window = 1000
COMMENT 'rolling windows; ask the view windows';

CREATE OR REPLACE VIEW windows
(
    scope String COMMENT 'what it is about: fleet, team, model, cluster or owner',
    name String COMMENT 'which one; empty for the fleet, and where jobs do not say, or nobody owns a stage',
    length String COMMENT 'how long it is, as the setting has it: 1h, 24h, 7d',
    end DateTime64(6, 'UTC') COMMENT 'end of the window; the first moment that is not in it',
    start DateTime64(6, 'UTC') COMMENT 'begin of the window',
    as_of DateTime64(6, 'UTC') COMMENT 'when it was made',
    heard UInt32 COMMENT 'how many partitions of the jobs had told all up to the end',
    parts UInt32 COMMENT 'how many partitions there are',
    e2e_s Float64 COMMENT 'seconds of jobs in the window; for an owner those of all jobs',
    effective_s Nullable(Float64) COMMENT 'seconds that consumed new data; NULL for an owner',
    lost_s Float64 COMMENT 'seconds lost; for an owner in its stages alone',
    ett_pct_unweighted Nullable(Float64) COMMENT '100 * effective_s / e2e_s; NULL for an owner, or without e2e_s',
    gpu_e2e_s Float64 COMMENT 'GPU-seconds of jobs in the window; for an owner those of all jobs',
    gpu_effective_s Nullable(Float64) COMMENT 'GPU-seconds that consumed new data; NULL for an owner',
    gpu_lost_s Float64 COMMENT 'GPU-seconds lost; for an owner in its stages alone',
    gpu_held_s Nullable(Float64) COMMENT 'GPU-seconds without scheduling; NULL for an owner',
    gpu_waited_s Nullable(Float64) COMMENT 'GPU-seconds of scheduling: waited for, not held; NULL for an owner',
    ett_pct Nullable(Float64) COMMENT 'effective training time in percent: 100 * gpu_effective_s / gpu_e2e_s; NULL for an owner, or without gpu_e2e_s',
    lost_pct Nullable(Float64) COMMENT '100 * gpu_lost_s / gpu_e2e_s; NULL where gpu_e2e_s is 0',
    components Map(String, Float64) COMMENT 'GPU-seconds lost to each component, always all six',
    stages Map(String, Float64) COMMENT 'GPU-seconds lost by stage, none that is 0',
    tts_count UInt32 COMMENT 'jobs whose first batch falls into the window',
    tts_p50_s Nullable(Float64) COMMENT 'median of their times to start, right within 1 %; NULL without any',
    tts_p90_s Nullable(Float64) COMMENT 'nine in ten started in that time or less',
    tts_p99_s Nullable(Float64) COMMENT '99 in 100 started in that time or less',
    ttr_count UInt32 COMMENT 'recoveries whose first batch falls into the window',
    ttr_p50_s Nullable(Float64) COMMENT 'median of their times to recover, right within 1 %; NULL without any',
    ttr_p90_s Nullable(Float64) COMMENT 'nine in ten recovered in that time or less',
    ttr_p99_s Nullable(Float64) COMMENT '99 in 100 recovered in that time or less',
    nof UInt32 COMMENT 'failures: attempts that failed or were preempted, and ended in the window',
    nof_infra UInt32 COMMENT 'failures without the causes user_code and config',
    nof_preempted UInt32 COMMENT 'attempts that were preempted',
    nof_per_1000_gpu_h Nullable(Float64) COMMENT 'failures per 1000 GPU-hours held; NULL where none were',
    mtbf_s Nullable(Float64) COMMENT 'seconds that jobs held GPUs, per failure; NULL without failures',
    live Map(String, UInt32) COMMENT 'live jobs at the end of the window, by status, none that is 0',
    version UInt64 COMMENT 'rises with every time that the window is published'
)
AS SELECT
    scope, name, length, end,
    told.1 AS start, told.2 AS as_of, told.3 AS heard, told.4 AS parts, told.5 AS e2e_s, told.6 AS effective_s,
    told.7 AS lost_s, told.8 AS ett_pct_unweighted, told.9 AS gpu_e2e_s, told.10 AS gpu_effective_s, told.11 AS gpu_lost_s, told.12 AS gpu_held_s,
    told.13 AS gpu_waited_s, told.14 AS ett_pct, told.15 AS lost_pct, told.16 AS components, told.17 AS stages, told.18 AS tts_count,
    told.19 AS tts_p50_s, told.20 AS tts_p90_s, told.21 AS tts_p99_s, told.22 AS ttr_count, told.23 AS ttr_p50_s, told.24 AS ttr_p90_s,
    told.25 AS ttr_p99_s, told.26 AS nof, told.27 AS nof_infra, told.28 AS nof_preempted, told.29 AS nof_per_1000_gpu_h, told.30 AS mtbf_s,
    told.31 AS live, told.32 AS version
FROM (
    SELECT
        scope, name, length, end,
        argMax(tuple(
            start, as_of, heard, parts, e2e_s, effective_s, lost_s, ett_pct_unweighted,
            gpu_e2e_s, gpu_effective_s, gpu_lost_s, gpu_held_s, gpu_waited_s, ett_pct, lost_pct, components,
            stages, tts_count, tts_p50_s, tts_p90_s, tts_p99_s, ttr_count, ttr_p50_s, ttr_p90_s,
            ttr_p99_s, nof, nof_infra, nof_preempted, nof_per_1000_gpu_h, mtbf_s, live, version
        ), ver) AS told
    FROM windows_log
    GROUP BY scope, name, length, end
);
