-- Alerts on regressions: one row for each state of an alert. A state that is written twice is one row.
CREATE TABLE IF NOT EXISTS alerts_log
(
    key String COMMENT 'what is watched: the same in every state, also when it fires anew',
    episode Int64 COMMENT 'names the time for which the alert fires; about its begin in microseconds since the Unix epoch',
    seq UInt32 COMMENT 'number of the state in its episode; rises',
    id String COMMENT 'names the state; webhooks and the topic have the same',
    status LowCardinality(String) COMMENT 'firing or resolved',
    severity LowCardinality(String) COMMENT 'info, warning or critical',
    starts_at DateTime64(6, 'UTC') COMMENT 'since when it fires',
    ends_at Nullable(DateTime64(6, 'UTC')) COMMENT 'when it ended; NULL while it fires',
    updated_at DateTime64(6, 'UTC') COMMENT 'when this state was found',
    silenced Bool COMMENT 'a silence matched when the state was written',
    labels Map(LowCardinality(String), String) COMMENT 'what it is routed, grouped and silenced by',
    title String COMMENT 'one line',
    body String COMMENT 'what moved, from what to what, since when, and what explains most of it',
    figures Map(LowCardinality(String), Float64) COMMENT 'the figures behind it',
    words Map(LowCardinality(String), String) COMMENT 'the facts behind it that are no figures',
    sql_titles Array(String) COMMENT 'what the queries of sql_queries show',
    sql_queries Array(String) COMMENT 'queries that show it',
    written DateTime64(6, 'UTC') COMMENT 'when the row was written'
)
ENGINE = ReplacingMergeTree
ORDER BY (key, episode, seq)
COMMENT 'states of alerts; ask the view alerts';

CREATE OR REPLACE VIEW alerts
(
    key String COMMENT 'what is watched',
    episode Int64 COMMENT 'names the time for which the alert fires',
    seq UInt32 COMMENT 'number of the newest state; each change counted once',
    id String COMMENT 'names that state; webhooks and the topic have the same',
    status String COMMENT 'firing or resolved',
    severity String COMMENT 'info, warning or critical',
    metric String COMMENT 'what moved; empty where the alert does not say',
    team String COMMENT 'team whose jobs they are; empty for none',
    owner String COMMENT 'team that owns the component; empty for none',
    component String COMMENT 'the component; empty for none',
    cluster String COMMENT 'the cluster; empty for none',
    model String COMMENT 'the model; empty for none',
    starts_at DateTime64(6, 'UTC') COMMENT 'since when it fires',
    ends_at Nullable(DateTime64(6, 'UTC')) COMMENT 'when it ended; NULL while it fires',
    updated_at DateTime64(6, 'UTC') COMMENT 'when this state was found',
    silenced Bool COMMENT 'a silence matched when the state was written',
    labels Map(String, String) COMMENT 'what it is routed, grouped and silenced by',
    title String COMMENT 'one line',
    body String COMMENT 'what moved, from what to what, since when, and what explains most of it',
    figures Map(String, Float64) COMMENT 'the figures behind it',
    words Map(String, String) COMMENT 'the facts behind it that are no figures',
    sql_titles Array(String) COMMENT 'what the queries of sql_queries show',
    sql_queries Array(String) COMMENT 'queries that show it'
)
AS SELECT
    key, episode, seq, id, status, severity,
    labels['metric'] AS metric, labels['team'] AS team, labels['owner'] AS owner, labels['component'] AS component,
    labels['cluster'] AS cluster, labels['model'] AS model,
    starts_at, ends_at, updated_at, silenced, labels, title, body, figures, words, sql_titles, sql_queries
FROM alerts_log
ANY INNER JOIN (SELECT key, episode, max(seq) AS seq FROM alerts_log GROUP BY key, episode) AS latest USING (key, episode, seq);
