-- The timeline at a third of the price: where most hours were written once, taking the newest version as rows are read
-- costs less than finding it first and joining. Names of stages stay encoded, so that each is looked at once and not in
-- every segment.
CREATE OR REPLACE VIEW segments
(
    job String COMMENT 'the training run',
    attempt UInt32 COMMENT 'number of the attempt; between attempts, that of the one before',
    stage LowCardinality(String) COMMENT 'what the time is charged to: a component, a dotted sub-stage of one, or effective_training',
    component LowCardinality(String) COMMENT 'the component of the stage: its first dotted part; effective_training is its own',
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
FROM segments_log FINAL
ARRAY JOIN segments_log.attempt AS a, segments_log.stage AS s, segments_log.start_us AS b, segments_log.length_us AS l, segments_log.gpus AS g;
