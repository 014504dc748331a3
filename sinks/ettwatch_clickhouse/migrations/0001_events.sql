-- Raw events as they were told. Everything else can be made anew from this table.
-- An event that is stored twice has the same job and uid: the view shows it once.
CREATE TABLE IF NOT EXISTS events_log
(
    job LowCardinality(String) COMMENT 'the training run that the event is of',
    ts DateTime64(6, 'UTC') COMMENT 'when it happened',
    uid UInt64 MATERIALIZED sipHash64(id, raw) COMMENT 'hash of id and content: equal for two copies of one event',
    id String CODEC(ZSTD(1)) COMMENT 'what the producer calls the event; unique in its job',
    kind LowCardinality(String) COMMENT 'what happened, such as progress or attempt_ended',
    v UInt8 COMMENT 'version of the wire format',
    attempt Nullable(UInt32) COMMENT 'number of the attempt, from 0; NULL for an event of the whole job',
    rank UInt32 COMMENT 'rank of the process that spoke',
    host LowCardinality(Nullable(String)) COMMENT 'machine of the process that spoke',
    source LowCardinality(String) COMMENT 'who spoke: trainer, launcher or scheduler',
    raw String CODEC(ZSTD(1)) COMMENT 'the event as JSON, as it was told',
    received DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)) COMMENT 'when it was taken in'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(ts)
ORDER BY (job, ts, uid)
TTL toDateTime(received) + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 1000
COMMENT 'raw events; ask the view events';

CREATE OR REPLACE VIEW events
(
    job String COMMENT 'the training run that the event is of',
    ts DateTime64(6, 'UTC') COMMENT 'when it happened',
    id String COMMENT 'what the producer calls the event; unique in its job',
    kind String COMMENT 'what happened, such as progress or attempt_ended',
    v UInt8 COMMENT 'version of the wire format',
    attempt Nullable(UInt32) COMMENT 'number of the attempt, from 0; NULL for an event of the whole job',
    rank UInt32 COMMENT 'rank of the process that spoke',
    host Nullable(String) COMMENT 'machine of the process that spoke',
    source String COMMENT 'who spoke: trainer, launcher or scheduler',
    raw String COMMENT 'the event as JSON, as it was told',
    received DateTime64(6, 'UTC') COMMENT 'when it was taken in'
)
AS SELECT job, ts, id, kind, v, attempt, rank, host, source, raw, received
FROM events_log
LIMIT 1 BY job, uid;
