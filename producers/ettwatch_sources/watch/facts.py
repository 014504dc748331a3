"""What a scheduler says of a job, whatever scheduler it is. Times are microseconds since the epoch."""

from typing import NamedTuple, TypeAlias

from ettwatch_schemas import Cause, Outcome, Trigger


class Submitted(NamedTuple):
    """The job is there."""

    key: str
    """By what the scheduler knows the job for good, such as a uid."""
    job: str
    ts: int
    eligible: int | None = None
    team: str | None = None
    model: str | None = None
    cluster: str | None = None
    gpus: int | None = None
    labels: tuple[tuple[str, str], ...] = ()


class Started(NamedTuple):
    """Hardware is allocated."""

    key: str
    ts: int
    gpus: int | None = None
    trigger: Trigger | None = None
    run: int | None = None
    """How often the scheduler started it anew by its own count; a higher one than before is another attempt."""


class Ended(NamedTuple):
    """The attempt is over."""

    key: str
    ts: int
    outcome: Outcome
    cause: Cause = "unknown"
    message: str = ""


class Hint(NamedTuple):
    """Why a part of the attempt ended: it explains an end that another word tells."""

    key: str
    ts: int
    cause: Cause
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None


class Finished(NamedTuple):
    """No attempt follows."""

    key: str
    ts: int
    outcome: Outcome
    cause: Cause = "unknown"
    message: str = ""


class Gone(NamedTuple):
    """The scheduler knows the job no longer; what was open ended at the latest at `ts`."""

    key: str
    ts: int


Fact: TypeAlias = Submitted | Started | Ended | Hint | Finished | Gone
"""Any fact."""
