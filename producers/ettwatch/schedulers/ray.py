"""Ray: the submission id of a job, else the number that the cluster gave it."""

import json
from collections.abc import Mapping

from ettwatch.schedulers.told import Told, job_name, submit_stamp


def tell(env: Mapping[str, str]) -> Told:
    """Return what Ray says; nothing outside of its jobs."""
    cluster = env.get("ETTWATCH_CLUSTER") or "ray"
    submission = _submission(env.get("RAY_JOB_CONFIG_JSON_ENV_VAR", ""))
    if submission:  # made by chance, so it does not come again
        return Told(job=job_name(cluster, submission))
    number = env.get("RAY_JOB_ID")
    # Each new cluster counts from 01000000 again.
    return Told(job=job_name(cluster, number, submitted=submit_stamp(env))) if number else Told()


def _submission(text: str) -> str | None:
    try:
        found = json.loads(text)["metadata"]["job_submission_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) and found else None
