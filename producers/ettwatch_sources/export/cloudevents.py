"""Jobs and events as CloudEvents 1.0, in their JSON format.

Sources: cloudevents/spec 1.0.2, spec.md and formats/json-format.md. `source` and `id` together are unique: an event
keeps its own id, a job has one for each version of its summary, so that a consumer that has seen one may drop its copy.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from ettwatch_schemas import Event, JobSummary, encode_event

BATCH_TYPE: Final = "application/cloudevents-batch+json"
"""The content type of an array of them."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Json = dict[str, Any]


def event_of(event: Event, cluster: str | None = None) -> Json:
    """Return an event of the wire as a CloudEvent of the type `io.ettwatch.event.KIND.v1`."""
    return _made(
        event.job, event.id, f"io.ettwatch.event.{event.kind}.v1", event.ts, json.loads(encode_event(event)), cluster
    )


def job_event(summary: JobSummary) -> Json:
    """Return how a job stands as a CloudEvent of the type `io.ettwatch.job.v1`."""
    data = summary.model_dump(mode="json")
    return _made(summary.job, str(summary.version), "io.ettwatch.job.v1", summary.t1, data, summary.cluster)


def _made(job: str, name: str, kind: str, ts: int, data: Json, cluster: str | None) -> Json:
    where = f"/{quote(cluster, safe='')}" if cluster else ""
    return {
        "specversion": "1.0",
        "id": name,
        # The job is a part of the source: ids are unique in their job only.
        "source": f"/ettwatch{where}/jobs/{quote(job, safe='')}",
        "type": kind,
        "subject": job,
        "time": (_EPOCH + timedelta(microseconds=ts)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "datacontenttype": "application/json",
        "data": data,
    }
