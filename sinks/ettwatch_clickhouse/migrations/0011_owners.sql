-- Who owns which component or stage: the rules of an ownership file. A file is one set of rows with one loaded and one
-- digest, inserted at once; the set with the greatest counts, whole, and those before it tell how it was.
CREATE TABLE IF NOT EXISTS owners_log
(
    loaded DateTime64(6, 'UTC') COMMENT 'when the file was taken in; rises',
    digest String COMMENT 'hash of all rules of the file',
    stage_prefix LowCardinality(String) COMMENT 'a component or stage; the rule holds for it and for what lies under it',
    cluster LowCardinality(String) COMMENT 'the cluster in which the rule holds; empty for every one',
    model LowCardinality(String) COMMENT 'the model for which the rule holds; empty for every one',
    system LowCardinality(String) COMMENT 'what the time is spent in; empty where the file does not say',
    team LowCardinality(String) COMMENT 'the team that owns it',
    contact LowCardinality(String) COMMENT 'where the team is found; empty where the file does not say',
    source String COMMENT 'the file'
)
ENGINE = ReplacingMergeTree
ORDER BY (loaded, digest, stage_prefix, cluster, model)
COMMENT 'rules of all ownership files that were taken in; ask the view owners';

CREATE OR REPLACE VIEW owners
(
    stage_prefix String COMMENT 'a component or stage; the rule holds for it and for what lies under it',
    cluster String COMMENT 'the cluster in which the rule holds; empty for every one',
    model String COMMENT 'the model for which the rule holds; empty for every one',
    system String COMMENT 'what the time is spent in; empty where the file does not say',
    team String COMMENT 'the team that owns it',
    contact String COMMENT 'where the team is found; empty where the file does not say',
    source String COMMENT 'the file',
    loaded DateTime64(6, 'UTC') COMMENT 'when the file was taken in'
)
AS SELECT DISTINCT stage_prefix, cluster, model, system, team, contact, source, loaded
FROM owners_log
INNER JOIN (SELECT loaded, digest FROM owners_log ORDER BY loaded DESC, digest DESC LIMIT 1) AS newest USING (loaded, digest);
