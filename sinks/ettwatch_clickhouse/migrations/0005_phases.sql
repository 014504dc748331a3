-- Phases as drawn: spans of one phase that overlap or touch, of any rank, are one row; background spans are one row
-- each. A later version replaces the row; a phase that a correction removed is a row with gone = 1.
CREATE TABLE IF NOT EXISTS phases_log
(
    job String COMMENT 'the training run',
    attempt UInt32 COMMENT 'number of the attempt; between attempts, that of the one before',
    phase LowCardinality(String) COMMENT 'what was done: a component, or a dotted sub-stage of one',
    background Bool COMMENT 'nothing waited for it',
    of_rank UInt32 COMMENT 'of a background phase the rank that told it, else 0',
    start DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'begin of the earliest of its spans',
    version UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'version of the job summary by which the row was made',
    written UInt64 CODEC(Delta, ZSTD(1)) COMMENT 'number of the write: rises, and is about the time in microseconds since the Unix epoch',
    ver UInt128 MATERIALIZED bitShiftLeft(toUInt128(version), 64) + written CODEC(ZSTD(1)) COMMENT 'version, then written: of rows with one key the greatest counts',
    final Bool COMMENT 'no event can change the phase any more',
    gone Bool COMMENT 'a correction removed the phase',
    end DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'end of the latest of its spans',
    ranks UInt32 COMMENT 'how many ranks told it',
    container Bool COMMENT 'has parts of its own, which are charged before it',
    charged_us Int64 COMMENT 'time charged to it',
    hidden_us Int64 COMMENT 'time in which it was open and another phase was charged',
    last_rank UInt32 COMMENT 'the rank that ended last',
    behind_us Int64 COMMENT 'time by which that rank ended after the second last; 0 for a single rank',
    open Bool COMMENT 'no end of it was told'
)
ENGINE = ReplacingMergeTree(ver)
ORDER BY (job, attempt, phase, background, of_rank, start)
SETTINGS non_replicated_deduplication_window = 1000
COMMENT 'merged phases; ask the view phases';

CREATE OR REPLACE VIEW phases
(
    job String COMMENT 'the training run',
    attempt UInt32 COMMENT 'number of the attempt; between attempts, that of the one before',
    phase String COMMENT 'what was done: a component, or a dotted sub-stage of one',
    component String COMMENT 'the component of the phase: its first dotted part',
    start DateTime64(6, 'UTC') COMMENT 'begin of the earliest of its spans',
    end DateTime64(6, 'UTC') COMMENT 'end of the latest of its spans',
    open Bool COMMENT 'no end of it was told',
    background Bool COMMENT 'nothing waited for it: drawn, never charged',
    container Bool COMMENT 'has parts of its own, which are charged before it',
    ranks UInt32 COMMENT 'how many ranks told it',
    last_rank UInt32 COMMENT 'the rank that ended last',
    behind_us Int64 COMMENT 'microseconds by which that rank ended after the second last; 0 for a single rank',
    behind_s Float64 COMMENT 'seconds by which that rank ended after the second last; 0 for a single rank',
    duration_us Int64 COMMENT 'length in microseconds',
    duration_s Float64 COMMENT 'length in seconds',
    charged_us Int64 COMMENT 'microseconds charged to it',
    charged_s Float64 COMMENT 'seconds charged to it',
    hidden_us Int64 COMMENT 'microseconds in which it was open and another phase was charged',
    hidden_s Float64 COMMENT 'seconds in which it was open and another phase was charged',
    version UInt64 COMMENT 'version of the job summary by which the row was made',
    final Bool COMMENT 'no event can change the phase any more'
)
AS SELECT
    job, attempt, phase, substringIndex(phase, '.', 1) AS component, start, end, open, background, container,
    ranks, last_rank, behind_us, behind_us / 1000000 AS behind_s,
    toUnixTimestamp64Micro(end) - toUnixTimestamp64Micro(start) AS duration_us,
    duration_us / 1000000 AS duration_s,
    charged_us, charged_us / 1000000 AS charged_s,
    hidden_us, hidden_us / 1000000 AS hidden_s,
    version, final
FROM phases_log
ANY INNER JOIN (
    SELECT job, attempt, phase, background, of_rank, start, max(ver) AS ver
    FROM phases_log
    GROUP BY job, attempt, phase, background, of_rank, start
) AS latest USING (job, attempt, phase, background, of_rank, start, ver)
WHERE NOT gone;
