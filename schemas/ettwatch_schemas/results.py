"""What is made of events: segments, spans, and the summaries of attempts and jobs.

Times are integer microseconds since the Unix epoch, UTC. Durations whose names end in `_s` are seconds as
floats (whole microseconds / 1e6); those without are integer microseconds.
"""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Status: TypeAlias = Literal[
    "pending",
    "starting",
    "training",
    "recovering",
    "silent",
    "succeeded",
    "failed",
    "cancelled",
    "lost",
]
"""Where a job stands: waiting, at work, or how it ended."""


class Segment(NamedTuple):
    """A stretch of a job's time charged to one stage. The segments of a job are disjoint and gapless."""

    job: str
    attempt: int
    stage: str
    """A component, a sub-stage of one, or `effective_training`."""
    start: int
    end: int
    gpus: int


class PhaseSpan(NamedTuple):
    """A phase as drawn: spans of one phase that overlap or touch, of any rank, are one."""

    job: str
    attempt: int
    phase: str
    start: int
    end: int
    ranks: int
    """How many ranks reported it."""
    background: bool
    container: bool
    """Whether it has parts of its own, which are charged before it."""
    charged: int
    """Microseconds charged to it."""
    hidden: int
    """Microseconds in which it was open and another phase was charged."""
    last_rank: int
    """The rank that ended last."""
    behind: int
    """Microseconds by which that rank ended after the second last; 0 for a single rank."""
    open: bool


_Time: TypeAlias = Annotated[int, Field(description="microseconds since the Unix epoch, UTC")]
_Components: TypeAlias = Annotated[
    dict[str, float], Field(description="seconds lost to each of the six components, always all six")
]
_Stages: TypeAlias = Annotated[
    dict[str, float], Field(description="seconds by stage, dotted names and effective_training, none that is 0")
]
_Hidden: TypeAlias = Annotated[
    dict[str, float], Field(description="seconds in which a phase was open and another was charged, by phase")
]
_Flags: TypeAlias = Annotated[
    list[str], Field(description="what was odd about the events, such as inferred_end or id_conflict")
]


class _Summary(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AttemptSummary(_Summary):
    """One attempt of a job: what it was, how it ended, and where its time went."""

    job: str
    attempt: int
    start: _Time
    end: _Time = Field(description="microseconds since the Unix epoch, UTC; now while the attempt is open")
    open: bool
    outcome: str | None
    cause: str | None
    exit_code: int | None
    signal: int | None
    message: str | None
    trigger: str | None
    gpus: int
    world_size: int | None
    trained: bool = Field(description="whether the data position advanced")
    loop_start: _Time | None = Field(description="begin of the training loop")
    first_batch: _Time | None = Field(description="when start-up was over")
    last_advance: _Time | None = Field(description="when the data position advanced last")
    loop_end: _Time | None = Field(description="end of the training loop")
    start_position: int | None = Field(description="samples consumed at the begin of the loop")
    end_position: int | None = Field(description="samples consumed at the last advance")
    tts_s: float | None = Field(description="time to start in seconds; of the first attempt only")
    ttr_s: float | None = Field(description="time to recover in seconds; of later attempts that train")
    recovery_s: float = Field(description="seconds lost to recovering, whether the attempt trained or not")
    effective_s: float = Field(description="seconds that consumed new data")
    components: _Components
    stages: _Stages
    hidden_s: _Hidden
    unsaved_s: float = Field(description="seconds of work that the end of the attempt discarded")
    flags: _Flags


class JobSummary(_Summary):
    """One job, as known at `version`: its ETT%, and where the rest of its time went."""

    job: str
    version: int = Field(description="rises strictly with what is known of the job")
    rules_version: str = Field(description="rules by which the figures were made")
    team: str | None
    model: str | None
    cluster: str | None
    labels: dict[str, str]
    status: Status
    attempts: int = Field(description="how many attempts there are")
    gpus: int = Field(description="GPUs of the last attempt")
    t0: _Time = Field(description="begin of the job")
    t1: _Time = Field(description="end of the job; now while it runs or waits for a retry")
    e2e_s: float = Field(description="seconds from t0 to t1")
    effective_s: float = Field(description="seconds that consumed new data")
    ett_pct: float | None = Field(description="100 * effective_s / e2e_s; null where e2e_s is 0")
    tts_s: float | None = Field(description="time to start of attempt 0 in seconds; null if it never trained")
    ttr_s: list[float] = Field(description="time to recover in seconds, of each later attempt that trains")
    recovery_s: float = Field(description="seconds lost to recovering, of all later attempts")
    nof: int = Field(description="number of failures: attempts that failed or were preempted")
    nof_infra: int = Field(description="nof without the causes user_code and config")
    nof_preempted: int = Field(description="attempts that were preempted")
    components: _Components
    stages: _Stages
    hidden_s: _Hidden
    gpu_effective_s: float = Field(description="GPU-seconds that consumed new data")
    gpu_e2e_s: float = Field(description="GPU-seconds from t0 to t1")
    gpu_held_s: float = Field(description="gpu_e2e_s without scheduling, which is waited for and not held")
    unsaved_s: float = Field(description="seconds of work that failures discarded")
    flags: _Flags
