"""Ray's own words for the states of jobs and the kinds of their errors."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ettwatch_schemas import Cause, Outcome

STATUSES: Final[Mapping[str, tuple[Outcome | None, str]]] = MappingProxyType(
    {
        "PENDING": (None, "waits: for resources, or for its runtime environment"),
        "RUNNING": (None, "its driver runs"),
        "STOPPED": ("cancelled", "stopped by its user"),
        "SUCCEEDED": ("succeeded", "its driver ended with exit code 0"),
        "FAILED": ("failed", "its driver failed, or could not be started"),
    }
)
"""Status of a job to how it ended; None: it has not."""

ERRORS: Final[Mapping[str, tuple[Cause, str]]] = MappingProxyType(
    {
        "JOB_ENTRYPOINT_COMMAND_ERROR": ("unknown", "the command ended with an exit code other than 0"),
        "JOB_ENTRYPOINT_COMMAND_START_ERROR": ("config", "the command could not be started"),
        "JOB_SUPERVISOR_ACTOR_DIED": ("hardware", "what supervises the job died, mostly with its node"),
        "JOB_SUPERVISOR_ACTOR_START_FAILURE": ("capacity", "what supervises the job could not be started"),
        "JOB_SUPERVISOR_ACTOR_START_TIMEOUT": ("capacity", "what supervises the job was not started in time"),
        "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE": ("unknown", "what supervises the job failed"),
        "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE": ("capacity", "no node fits what supervises the job"),
        "RUNTIME_ENV_SETUP_FAILURE": ("config", "its runtime environment could not be set up"),
    }
)
"""Kind of an error to its cause."""
