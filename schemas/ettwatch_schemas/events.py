"""The events of the wire, version 1: one frozen model per kind, told apart by `kind`.

An event built in Python is checked as a decoded one is; where it is wrong, pydantic's ValidationError is
raised. Times are integer microseconds since the Unix epoch, UTC.
"""

from typing import Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from ettwatch_schemas.fields import (
    Amount,
    Attrs,
    Cause,
    Count,
    ExitCode,
    JobName,
    Key,
    Labels,
    Message,
    Name,
    Outcome,
    Phase,
    Seconds,
    Source,
    Trigger,
    Ts,
    Version,
)

_POSITION: Final = "samples of the data stream consumed so far"
_STEP: Final = "training steps done so far"
_DATA_WAIT: Final = "microseconds waited for data since training_started, cumulative"
_ATTRS: Final = "details for people, any JSON values, such as cache (hit, miss), cache_key, bytes"


class BaseEvent(BaseModel):
    """What every event carries."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)

    v: Version = Field(default=1, description="version of the wire format, 1")
    id: Key = Field(description="what makes the event unique in its job")
    kind: str
    job: JobName = Field(description="the training run as its owner thinks of it")
    ts: Ts = Field(description="when it happened, integer microseconds since the Unix epoch, UTC")
    attempt: Count | None = Field(default=None, description="number of the attempt, from 0")
    rank: Count = Field(default=0, description="rank of the process that speaks")
    host: Name | None = Field(default=None, description="machine of the process that speaks")
    source: Source = Field(default="trainer", description="who speaks")


class _AttemptEvent(BaseEvent):
    attempt: Count = Field(description="number of the attempt, from 0")


class JobSubmitted(BaseEvent):
    """The job was submitted."""

    kind: Literal["job_submitted"] = "job_submitted"
    team: Name | None = Field(default=None, description="team whose job it is")
    model: Name | None = Field(default=None, description="model that is trained")
    cluster: Name | None = Field(default=None, description="cluster it runs on")
    gpus: Count | None = Field(default=None, description="GPUs asked for")
    eligible_ts: Ts | None = Field(
        default=None, description="when resources for it were available, integer microseconds"
    )
    labels: Labels | None = Field(default=None, description="free labels, text to text")


class AttemptStarted(_AttemptEvent):
    """Hardware for the attempt is allocated."""

    kind: Literal["attempt_started"] = "attempt_started"
    gpus: Count | None = Field(default=None, description="GPUs held by the attempt")
    world_size: Count | None = Field(default=None, description="processes of the attempt")
    trigger: Trigger | None = Field(default=None, description="why the attempt was started")


class PhaseStarted(_AttemptEvent):
    """A span of work began."""

    kind: Literal["phase_started"] = "phase_started"
    span: Key = Field(description="name of the span, unique in attempt and rank")
    phase: Phase = Field(description="what is done: a component, or a dotted sub-stage of one")
    parent: Key | None = Field(default=None, description="span of the same rank that this one is part of")
    background: bool = Field(default=False, description="true if nothing waits for it")
    attrs: Attrs | None = Field(default=None, description=_ATTRS)


class PhaseEnded(_AttemptEvent):
    """A span of work ended."""

    kind: Literal["phase_ended"] = "phase_ended"
    span: Key = Field(description="name of the span, as in phase_started")
    outcome: Literal["ok", "error"] = Field(default="ok", description="whether the work was done")
    attrs: Attrs | None = Field(default=None, description=_ATTRS)


class TrainingStarted(_AttemptEvent):
    """The first step of the attempt begins."""

    kind: Literal["training_started"] = "training_started"
    position: Amount = Field(description=f"{_POSITION}, as resumed")
    step: Amount | None = Field(default=None, description=f"{_STEP}, as resumed")
    report_every_s: Seconds | None = Field(
        default=None,
        description="seconds, the longest silence between two progress events while the process lives",
    )


class Progress(_AttemptEvent):
    """How far the loop is: sent when the first step completes, then every few seconds."""

    kind: Literal["progress"] = "progress"
    position: Amount = Field(description=_POSITION)
    step: Amount | None = Field(default=None, description=_STEP)
    data_wait_us: Amount | None = Field(default=None, description=_DATA_WAIT)


class CheckpointDurable(_AttemptEvent):
    """A checkpoint is safe on storage: a restart could load it."""

    kind: Literal["checkpoint_durable"] = "checkpoint_durable"
    step: Amount | None = Field(default=None, description="step that the checkpoint holds")
    position: Amount = Field(description="position that the checkpoint holds, in samples")
    bytes: Amount | None = Field(default=None, description="size of the checkpoint in bytes")
    started_ts: Ts | None = Field(default=None, description="when saving began, integer microseconds")


class TrainingEnded(_AttemptEvent):
    """The loop ended."""

    kind: Literal["training_ended"] = "training_ended"
    position: Amount = Field(description=_POSITION)
    step: Amount | None = Field(default=None, description=_STEP)
    data_wait_us: Amount | None = Field(default=None, description=_DATA_WAIT)


class AttemptEnded(_AttemptEvent):
    """The attempt is over and its hardware is released."""

    kind: Literal["attempt_ended"] = "attempt_ended"
    outcome: Outcome = Field(description="how the attempt ended")
    cause: Cause = Field(default="unknown", description="why the attempt ended")
    exit_code: ExitCode | None = Field(default=None, description="exit code of the process")
    signal: Count | None = Field(default=None, description="number of the signal that killed the process")
    message: Message | None = Field(default=None, description="what went wrong, for people")


class JobEnded(BaseEvent):
    """The job is over: no attempt follows."""

    kind: Literal["job_ended"] = "job_ended"
    outcome: Outcome = Field(description="how the job ended")


class Heartbeat(_AttemptEvent):
    """The attempt is alive, nothing else."""

    kind: Literal["heartbeat"] = "heartbeat"


Event: TypeAlias = (
    JobSubmitted
    | AttemptStarted
    | PhaseStarted
    | PhaseEnded
    | TrainingStarted
    | Progress
    | CheckpointDurable
    | TrainingEnded
    | AttemptEnded
    | JobEnded
    | Heartbeat
)
"""Any event."""

EVENT_TYPES: Final[tuple[type[Event], ...]] = get_args(Event)
"""The models of all kinds, in the order of a job's life."""

KINDS: Final[tuple[str, ...]] = tuple(model.model_fields["kind"].default for model in EVENT_TYPES)
"""The names of all kinds, in the same order."""
