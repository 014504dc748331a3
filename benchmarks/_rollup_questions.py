"""The dashboard questions of docs/cookbook.md: over the rollups, as they stand there, and from the truth views."""

import re
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["TRUTH", "Question", "questions"]

_PAGE: Final = Path(__file__).parents[1] / "docs" / "cookbook.md"
_BLOCK: Final = re.compile(r"^### (.+?)\n.*?^```sql\n(.*?)^```", re.M | re.S)

# Of the two weeks of the cookbook, by the begin of a segment.
_WEEKS: Final = "start >= '2026-09-14' AND start < '2026-09-28'"
_OF_JOBS: Final = "INNER JOIN (SELECT job, team, model, cluster FROM jobs) AS told USING (job)"
# The hash of a job instead of its name makes keys of one size, which are looked up in half the time.
_BY_HASH: Final = "INNER JOIN (SELECT cityHash64(job) AS k, team, model, cluster FROM jobs) AS told USING (k)"
_FAILED: Final = "outcome IN ('failed', 'preempted') AND end >= '2026-09-14' AND end < '2026-09-28'"
_STARTED: Final = "first_batch >= '2026-09-14' AND first_batch < '2026-09-28'"

TRUTH: Final[dict[str, str]] = {
    "What share of its GPU time does the fleet use?": f"""
SELECT
    day, round(sum(gpu_effective) / sum(gpu) * 100, 1), round(sum(effective) / sum(us) * 100, 1),
    round(sum(gpu) / 3.6e9), count(), any(nof)
FROM (
    SELECT
        toDate(start) AS day, cityHash64(job) AS k, sum(gpu_us) AS gpu, sum(duration_us) AS us,
        sumIf(gpu_us, stage = 'effective_training') AS gpu_effective,
        sumIf(duration_us, stage = 'effective_training') AS effective
    FROM segments WHERE {_WEEKS} GROUP BY day, k
) AS s
LEFT JOIN (SELECT toDate(end) AS day, count() AS nof FROM attempts WHERE {_FAILED} GROUP BY day) AS f USING (day)
GROUP BY day ORDER BY day LIMIT 7""",
    "Where do the GPU-hours go?": f"""
SELECT component, round(sum(gpu_us) / 3.6e9, 1) AS gpu_hours, round(sum(gpu_us) / sum(sum(gpu_us)) OVER () * 100, 1)
FROM segments WHERE {_WEEKS} GROUP BY component ORDER BY gpu_hours DESC""",
    "Which stages cost most?": f"""
SELECT stage, round(sum(gpu_us) / 3.6e9, 1) AS gpu_hours, round(sum(duration_us) / 3.6e9, 1)
FROM segments WHERE {_WEEKS} AND stage != 'effective_training' GROUP BY stage ORDER BY gpu_hours DESC LIMIT 8""",
    "At which hour of the day is the fleet at its worst?": f"""
SELECT of_day, round(effective / gpu * 100, 1) AS ett_pct, nof
FROM (
    SELECT toHour(start) AS of_day, sum(gpu_us) AS gpu, sumIf(gpu_us, stage = 'effective_training') AS effective
    FROM segments WHERE {_WEEKS} GROUP BY of_day
) AS s
LEFT JOIN (SELECT toHour(end) AS of_day, count() AS nof FROM attempts WHERE {_FAILED} GROUP BY of_day) AS f
USING (of_day)
ORDER BY ett_pct, of_day LIMIT 5""",
    "How long do GPUs wait for jobs, and jobs for GPUs?": f"""
SELECT
    cluster, round((sum(gpu) - sum(waited)) / 3.6e9), round(sum(waited) / 3.6e9), round(sum(waited) / sum(gpu) * 100, 1)
FROM (
    SELECT job, sum(gpu_us) AS gpu, sumIf(gpu_us, component = 'scheduling') AS waited
    FROM segments WHERE {_WEEKS} GROUP BY job
) AS s {_OF_JOBS} GROUP BY cluster ORDER BY cluster""",
    "How do the teams compare?": f"""
SELECT team, round(gpu / 3.6e9) AS gpu_hours, round(effective / gpu * 100, 1), nof, round(3.6e12 * nof / held, 1)
FROM (
    SELECT team, sum(gpu_of_job) AS gpu, sum(effective_of_job) AS effective, sum(held_of_job) AS held
    FROM (
        SELECT
            job, sum(gpu_us) AS gpu_of_job, sumIf(gpu_us, stage = 'effective_training') AS effective_of_job,
            sumIf(gpu_us, component != 'scheduling') AS held_of_job
        FROM segments WHERE {_WEEKS} GROUP BY job
    ) AS j {_OF_JOBS} GROUP BY team
) AS s
LEFT JOIN (SELECT team, count() AS nof FROM attempts {_OF_JOBS} WHERE {_FAILED} GROUP BY team) AS f ON s.team <=> f.team
ORDER BY gpu_hours DESC""",
    "Which model loses most, and to what?": f"""
SELECT model, component, round(sum(gpu) / 3.6e9, 1) AS lost
FROM (
    SELECT cityHash64(job) AS k, component, sum(gpu_us) AS gpu
    FROM segments WHERE {_WEEKS} AND stage != 'effective_training' GROUP BY k, component
) AS s {_BY_HASH} GROUP BY model, component ORDER BY lost DESC LIMIT 6""",
    "How long do a team's jobs take to start?": f"""
SELECT
    team, count(), round(quantileExactInclusive(0.5)(assumeNotNull(tts_us)) / 1e6) AS p50,
    round(quantileExactInclusive(0.9)(assumeNotNull(tts_us)) / 1e6),
    round(quantileExactInclusive(0.99)(assumeNotNull(tts_us)) / 1e6)
FROM attempts {_OF_JOBS} WHERE {_STARTED} AND tts_us IS NOT NULL GROUP BY team ORDER BY p50 DESC, team""",
    "And to come back after a failure?": f"""
SELECT
    team, count(), round(quantileExactInclusive(0.5)(assumeNotNull(ttr_us)) / 1e6) AS p50,
    round(quantileExactInclusive(0.9)(assumeNotNull(ttr_us)) / 1e6), round(sum(ttr_us) / 3.6e9, 1)
FROM attempts {_OF_JOBS} WHERE {_STARTED} AND ttr_us IS NOT NULL GROUP BY team ORDER BY p50 DESC, team""",
    "What does each owner answer for?": f"""
SELECT
    nullIf(owner.1, '') AS owned_by, round(sum(gpu) / 3.6e9, 1) AS gpu_hours, uniqExact(stage),
    nullIf(any(owner.2), '')
FROM (
    SELECT
        stage, m, c, any(gpu_of_all) AS gpu,
        argMaxIf(
            (o.team, o.contact), (length(o.stage_prefix), o.cluster != '', o.model != ''),
            startsWith(concat(stage, '.'), concat(o.stage_prefix, '.')) AND o.model IN ('', m) AND o.cluster IN ('', c)
        ) AS owner
    FROM (
        SELECT stage, ifNull(model, '') AS m, ifNull(cluster, '') AS c, sum(gpu_of_job) AS gpu_of_all
        FROM (
            SELECT cityHash64(job) AS k, stage, sum(gpu_us) AS gpu_of_job
            FROM segments WHERE {_WEEKS} AND stage != 'effective_training' GROUP BY k, stage
        ) AS j {_BY_HASH} GROUP BY stage, m, c
    ) AS s
    CROSS JOIN owners AS o
    GROUP BY stage, m, c
)
GROUP BY owned_by ORDER BY gpu_hours DESC""",
    "Which jobs lost most?": f"""
SELECT job, team, round(lost / 3.6e9, 1) AS lost_gpu_hours, round((1 - lost / gpu) * 100, 1), nof
FROM (
    SELECT job, sum(gpu_us) AS gpu, sumIf(gpu_us, stage != 'effective_training') AS lost
    FROM segments WHERE {_WEEKS} GROUP BY job
) AS s {_OF_JOBS}
LEFT JOIN (SELECT job, count() AS nof FROM attempts WHERE {_FAILED} GROUP BY job) AS f USING (job)
ORDER BY lost_gpu_hours DESC, job LIMIT 5""",
    "How many of a team's failures are its own?": f"""
SELECT
    team, count() AS failures, countIf(ifNull(cause, '') NOT IN ('user_code', 'config')),
    countIf(ifNull(cause, '') IN ('user_code', 'config')), countIf(outcome = 'preempted')
FROM attempts {_OF_JOBS} WHERE {_FAILED} GROUP BY team ORDER BY failures DESC, team""",
    "How much is trained twice?": f"""
SELECT team, round(sum(rework) / 3.6e9, 1) AS gpu_hours, round(sum(rework) / sum(sum(gpu)) OVER () * 100, 2)
FROM (
    SELECT job, sum(gpu_us) AS gpu, sumIf(gpu_us, stage = 'wasted_training.rework') AS rework
    FROM segments WHERE {_WEEKS} GROUP BY job
) AS s {_OF_JOBS} GROUP BY team HAVING gpu_hours > 0 ORDER BY gpu_hours DESC""",
    "Where does the trainer wait for data, or hang?": f"""
SELECT model, round(sum(stall) / 3.6e9, 1) AS stalled, round(sum(hang) / 3.6e9, 1)
FROM (
    SELECT
        job, sumIf(gpu_us, stage = 'wasted_training.data_stall') AS stall,
        sumIf(gpu_us, stage = 'wasted_training.hang') AS hang
    FROM segments WHERE {_WEEKS} GROUP BY job
) AS s {_OF_JOBS} GROUP BY model ORDER BY stalled DESC""",
    "How long are GPUs held for publishing?": f"""
SELECT model, round(sum(gpu) / 3.6e9, 1) AS gpu_hours, round(sum(us) / 1e6)
FROM (
    SELECT job, sum(gpu_us) AS gpu, sum(duration_us) AS us
    FROM segments WHERE {_WEEKS} AND stage IN ('shutdown.model_publish', 'shutdown.final_checkpoint') GROUP BY job
) AS s {_OF_JOBS} GROUP BY model ORDER BY gpu_hours DESC""",
}
"""By title: the same answer from segments and attempts."""


class Question(NamedTuple):
    """One dashboard question.

    Attributes:
        title: As in the cookbook.
        rollups: The SQL there.
        truth: The SQL over the truth views.
    """

    title: str
    rollups: str
    truth: str


def questions() -> list[Question]:
    """Return them in the order of the page."""
    page = {found[1]: found[2] for found in _BLOCK.finditer(_PAGE.read_text("utf-8"))}
    missing = TRUTH.keys() - page
    if missing:
        raise ValueError(f"docs/cookbook.md does not ask: {sorted(missing)}")
    return [Question(title, sql, TRUTH[title]) for title, sql in page.items() if title in TRUTH]
