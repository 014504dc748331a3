"""The watcher of a Ray cluster: asks the dashboard's jobs API (`GET /api/jobs/`) every so often.

Format: ray/dashboard/modules/job/common.py and pydantic_models.py (JobDetails). Times are milliseconds since the epoch.
A job has one attempt: Ray does not start a driver anew. `start_time` is when the job was submitted; when its driver
started is not told: the attempt begins when the job is first seen running, if it was seen waiting before that, else
when it was submitted.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import urllib3

from ettwatch_schemas import Cause
from ettwatch_sources.causes import cause_of
from ettwatch_sources.ray.words import ERRORS, STATUSES
from ettwatch_sources.reaching import unreached
from ettwatch_sources.times import NoTime, from_number
from ettwatch_sources.told import Told
from ettwatch_sources.watch.facts import Ended, Fact, Finished, Started, Submitted
from ettwatch_sources.watch.loop import PollError
from ettwatch_sources.watch.tracker import Tracker

_PATH: Final = "/api/jobs/"
_TIMEOUT_S: Final = 30.0


class RayPoller:
    """Asks one cluster.

    Args:
        address: The dashboard's address, such as `http://127.0.0.1:8265`.
        cluster: The cluster's name.
        token: A bearer token, if the dashboard wants one.
        say: Takes a line for people.
    """

    def __init__(
        self, address: str, cluster: str | None, token: str = "", say: Callable[[str], None] = lambda text: None
    ) -> None:
        self._address = address.rstrip("/")
        self._cluster = cluster
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._say = say
        self._pool = urllib3.PoolManager(retries=False)
        self._tracker = Tracker(self._address + _PATH)
        self._told: set[str] = set()
        self.read = self.refused = 0

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a cursor. Raises TypeError where it is none."""
        self._tracker.load(state.get("jobs", {}))

    def dump(self) -> dict[str, Any]:
        """Return the state for the cursor file."""
        return {"jobs": self._tracker.dump()}

    def poll(self, now: int) -> Iterator[Told]:
        """Yield what is new. Raises PollError."""
        for job in self._jobs():
            # One that was seen waiting has started since; one that was never seen before may have long ago.
            waited = self._tracker.knows(_name(job))
            facts = list(facts_of(job, self._cluster, now if waited else None, self._unknown))
            if not facts:
                self.refused += 1
                self._say(f"a job without an id or a start_time is refused: {str(job)[:200]}")
                continue
            self.read += 1
            for fact in facts:
                yield from self._tracker.apply(fact, now)
        yield from self._tracker.flush()

    def _unknown(self, word: str) -> None:
        if word not in self._told and len(self._told) < 1000:
            self._told.add(word)
            self._say(f"{word} is not known here; it is kept as it stands")

    def _jobs(self) -> list[Mapping[str, Any]]:
        try:
            answer = self._pool.request(
                "GET", self._address + _PATH, headers=self._headers, timeout=_TIMEOUT_S, redirect=False
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise PollError(unreached(error, self._address, "dashboard", "name it with --address")) from None
        if answer.status != 200:
            raise PollError(f"{self._address}{_PATH} answers {answer.status}; {_asked(answer.status)}")
        try:
            told = json.loads(answer.data)
        except ValueError:
            raise PollError(f"{self._address}{_PATH} answers no JSON; {_asked(200)}") from None
        # A list since Ray 2.2, a mapping by the id of the submission before.
        found = list(told.values()) if isinstance(told, dict) else told
        return [job for job in found if isinstance(job, dict)] if isinstance(found, list) else []


def _asked(status: int) -> str:
    if status in (401, 403):
        return "it wants a token, or another one: name its file with --token-file"
    return "is it the address of the dashboard? name it with --address"


def facts_of(
    job: Mapping[str, Any], cluster: str | None, seen_at: int | None, unknown: Callable[[str], None]
) -> Iterator[Fact]:
    """Yield what one job of the API says. `seen_at` is when it is seen, if it was seen waiting before."""
    name = _name(job)
    submitted = _time(job.get("start_time"))
    if not name or submitted is None:
        return
    told = job.get("metadata")
    metadata: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    gpus = job.get("entrypoint_num_gpus")
    labels = tuple(
        (key, str(value)[:500])
        for key, value in (("ray_job_id", job.get("job_id")), ("entrypoint", job.get("entrypoint")))
        if value
    )
    yield Submitted(
        key=name,
        job=str(metadata.get("ettwatch_job") or name),
        ts=submitted,
        team=str(metadata["team"]) if metadata.get("team") else None,
        model=str(metadata["model"]) if metadata.get("model") else None,
        cluster=cluster,
        gpus=int(gpus) if isinstance(gpus, int | float) and gpus >= 1 else None,
        labels=labels,
    )
    status = str(job.get("status") or "")
    if status not in STATUSES:
        unknown(f"status {status}")
        return
    outcome, _ = STATUSES[status]
    ended = _time(job.get("end_time"))
    if status == "RUNNING":
        yield Started(name, submitted if seen_at is None else seen_at)
    if outcome is None or ended is None:
        return
    message = str(job.get("message") or "")
    cause: Cause = "unknown"
    if outcome == "failed":
        kind = str(job.get("error_type") or "")
        if kind and kind not in ERRORS:
            unknown(f"error_type {kind}")
        cause = ERRORS.get(kind, ("unknown", ""))[0]
        if cause == "unknown":
            cause = cause_of(message)
        message = f"{kind}: {message}" if kind else message
    # One that was never seen running began, as far as is known, when it was submitted.
    yield Started(name, submitted)
    yield Ended(name, ended, outcome, cause, message[-4000:])
    yield Finished(name, ended, outcome)


def _name(job: Mapping[str, Any]) -> str:
    return str(job.get("submission_id") or job.get("job_id") or "")


def _time(value: object) -> int | None:
    try:
        return from_number(value, "ms")
    except NoTime:
        return None
