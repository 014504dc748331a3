-- The timeline: one row for each hour of a job, with the hour's segments in arrays. A later version of the row
-- replaces it as a whole, so that a corrected timeline leaves nothing behind. An hour that is no more is a row with
-- empty arrays.
CREATE TABLE IF NOT EXISTS segments_log
(
    job String COMMENT 'the training run',
    cell DateTime64(0, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'begin of the hour',
    version UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'version of the job summary by which the row was made',
    written UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'number of the write: rises, and is about the time in microseconds since the Unix epoch',
    ver UInt128 MATERIALIZED bitShiftLeft(toUInt128(version), 64) + written CODEC(ZSTD(1)) COMMENT 'version, then written: of rows with one key the greatest counts',
    attempt Array(UInt32) CODEC(ZSTD(1)) COMMENT 'of each segment: number of the attempt',
    stage Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'of each segment: what the time is charged to',
    start_us Array(UInt32) CODEC(Delta, ZSTD(1)) COMMENT 'of each segment: its begin, in microseconds after the begin of the hour',
    length_us Array(UInt32) CODEC(ZSTD(1)) COMMENT 'of each segment: its length in microseconds',
    gpus Array(UInt32) CODEC(ZSTD(1)) COMMENT 'of each segment: GPUs by which it weighs'
)
ENGINE = ReplacingMergeTree(ver)
PARTITION BY toYYYYMM(cell)
ORDER BY (job, cell)
SETTINGS non_replicated_deduplication_window = 1000
COMMENT 'timelines by hour; ask the view segments';

CREATE OR REPLACE VIEW segments
(
    job String COMMENT 'the training run',
    attempt UInt32 COMMENT 'number of the attempt; between attempts, that of the one before',
    stage String COMMENT 'what the time is charged to: a component, a dotted sub-stage of one, or effective_training',
    component String COMMENT 'the component of the stage: its first dotted part; effective_training is its own',
    start DateTime64(6, 'UTC') COMMENT 'begin of the segment',
    end DateTime64(6, 'UTC') COMMENT 'end of the segment; segments are cut at whole hours',
    gpus UInt32 COMMENT 'GPUs by which the time weighs',
    duration_us Int64 COMMENT 'length in microseconds',
    duration_s Float64 COMMENT 'length in seconds',
    gpu_us Int64 COMMENT 'length times GPUs, in GPU-microseconds',
    gpu_s Float64 COMMENT 'length times GPUs, in GPU-seconds'
)
AS SELECT
    job,
    a AS attempt,
    s AS stage,
    substringIndex(s, '.', 1) AS component,
    fromUnixTimestamp64Micro(toInt64(cell) * 1000000 + b, 'UTC') AS start,
    fromUnixTimestamp64Micro(toInt64(cell) * 1000000 + b + l, 'UTC') AS end,
    g AS gpus,
    toInt64(l) AS duration_us,
    l / 1000000 AS duration_s,
    toInt64(l) * g AS gpu_us,
    (toInt64(l) * g) / 1000000 AS gpu_s
FROM segments_log
ANY INNER JOIN (SELECT job, cell, max(ver) AS ver FROM segments_log GROUP BY job, cell SETTINGS optimize_aggregation_in_order = 1) AS latest USING (job, cell, ver)
ARRAY JOIN segments_log.attempt AS a, segments_log.stage AS s, segments_log.start_us AS b, segments_log.length_us AS l, segments_log.gpus AS g;
