-- What each owner of a component or stage answers for. Of the rules that fit, the longest prefix counts; of those, the one
-- that names cluster and model, then the cluster, then the model, then neither.

CREATE OR REPLACE VIEW owner_hourly
(
    hour DateTime64(0, 'UTC') COMMENT 'begin of the hour',
    owner Nullable(String) COMMENT 'team that owns the stage; NULL where nobody is named',
    system Nullable(String) COMMENT 'what the time is spent in',
    contact Nullable(String) COMMENT 'where the owner is found',
    stage String COMMENT 'what the time is charged to',
    component String COMMENT 'the component of the stage',
    team Nullable(String) COMMENT 'team whose jobs they are; NULL for none',
    model Nullable(String) COMMENT 'model that is trained; NULL for none',
    cluster Nullable(String) COMMENT 'cluster they run on; NULL for none',
    job_s Float64 COMMENT 'seconds of jobs',
    gpu_s Float64 COMMENT 'GPU-seconds'
)
AS SELECT
    hour, nullIf(owned.owner.1, '') AS owner, nullIf(owned.owner.2, '') AS system, nullIf(owned.owner.3, '') AS contact,
    told.stage AS stage, told.component AS component, told.team AS team, told.model AS model, told.cluster AS cluster,
    told.job_s AS job_s, told.gpu_s AS gpu_s
FROM (
    SELECT *, ifNull(model, '') AS of_model, ifNull(cluster, '') AS of_cluster FROM stage_hourly WHERE stage != 'effective_training'
) AS told
LEFT JOIN (
    SELECT stage, of_model, of_cluster, argMax(rule, (length(prefix), rule.4, rule.5)) AS owner
    FROM (
        SELECT stage, of_model, of_cluster, prefix
        FROM (
            SELECT DISTINCT s AS stage, toString(model) AS of_model, toString(cluster) AS of_cluster
            FROM rollup_hours AS figures
            ARRAY JOIN figures.stage AS s
        )
        ARRAY JOIN arrayMap(n -> arrayStringConcat(arraySlice(splitByChar('.', stage), 1, n), '.'), range(1, 1 + length(splitByChar('.', stage)))) AS prefix
    ) AS asked
    INNER JOIN (
        SELECT
            stage_prefix AS prefix, ifNull(cluster, '') AS c, ifNull(model, '') AS m,
            (ifNull(team, ''), ifNull(system, ''), ifNull(contact, ''), c != '', m != '') AS rule
        FROM owners
    ) AS rules USING (prefix)
    WHERE (c = '' OR c = of_cluster) AND (m = '' OR m = of_model)
    GROUP BY stage, of_model, of_cluster
) AS owned USING (stage, of_model, of_cluster);

CREATE OR REPLACE VIEW owner_daily
(
    day Date32 COMMENT 'the day, in UTC',
    owner Nullable(String) COMMENT 'team that owns the stage; NULL where nobody is named',
    system Nullable(String) COMMENT 'what the time is spent in',
    contact Nullable(String) COMMENT 'where the owner is found',
    stage String COMMENT 'what the time is charged to',
    component String COMMENT 'the component of the stage',
    team Nullable(String) COMMENT 'team whose jobs they are; NULL for none',
    model Nullable(String) COMMENT 'model that is trained; NULL for none',
    cluster Nullable(String) COMMENT 'cluster they run on; NULL for none',
    job_s Float64 COMMENT 'seconds of jobs',
    gpu_s Float64 COMMENT 'GPU-seconds'
)
AS SELECT
    day, nullIf(owned.owner.1, '') AS owner, nullIf(owned.owner.2, '') AS system, nullIf(owned.owner.3, '') AS contact,
    told.stage AS stage, told.component AS component, told.team AS team, told.model AS model, told.cluster AS cluster,
    told.job_s AS job_s, told.gpu_s AS gpu_s
FROM (
    SELECT *, ifNull(model, '') AS of_model, ifNull(cluster, '') AS of_cluster FROM stage_daily WHERE stage != 'effective_training'
) AS told
LEFT JOIN (
    SELECT stage, of_model, of_cluster, argMax(rule, (length(prefix), rule.4, rule.5)) AS owner
    FROM (
        SELECT stage, of_model, of_cluster, prefix
        FROM (
            SELECT DISTINCT s AS stage, toString(model) AS of_model, toString(cluster) AS of_cluster
            FROM rollup_days AS figures
            ARRAY JOIN figures.stage AS s
        )
        ARRAY JOIN arrayMap(n -> arrayStringConcat(arraySlice(splitByChar('.', stage), 1, n), '.'), range(1, 1 + length(splitByChar('.', stage)))) AS prefix
    ) AS asked
    INNER JOIN (
        SELECT
            stage_prefix AS prefix, ifNull(cluster, '') AS c, ifNull(model, '') AS m,
            (ifNull(team, ''), ifNull(system, ''), ifNull(contact, ''), c != '', m != '') AS rule
        FROM owners
    ) AS rules USING (prefix)
    WHERE (c = '' OR c = of_cluster) AND (m = '' OR m = of_model)
    GROUP BY stage, of_model, of_cluster
) AS owned USING (stage, of_model, of_cluster);
