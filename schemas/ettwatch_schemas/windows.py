"""What `ettwatch windows` publishes: the figures of one rolling window."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ettwatch_schemas.pack import validated

__all__ = ["LIVE", "Scope", "Window", "decode_window", "encode_window"]

Scope: TypeAlias = Literal["fleet", "team", "model", "cluster", "owner"]
"""What a window is about."""

LIVE: Final = ("pending", "starting", "training", "recovering")
"""How a live job may stand at the end of a window."""


_Time: TypeAlias = Annotated[int, Field(ge=-(2**62), lt=2**62)]
_Count: TypeAlias = Annotated[int, Field(ge=0, lt=2**32)]


class Window(BaseModel):
    """One window: the figures of the fleet, of a team's, model's or cluster's jobs, or of an owner's stages."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    v: Literal[1] = Field(description="version of the form")
    scope: Scope = Field(description="fleet, team, model, cluster or owner")
    name: str = Field(description="which one; empty for the fleet, and where jobs do not say, or nobody owns a stage")
    length: str = Field(description="how long, as the setting has it: 1h, 24h, 7d")
    start: _Time = Field(description="microseconds since the Unix epoch, UTC")
    end: _Time = Field(description="microseconds since the Unix epoch, UTC; the first that is not in the window")
    version: int = Field(ge=0, lt=2**64, description="of one scope, name, length and end the greatest counts")
    as_of: _Time = Field(description="when it was made, microseconds since the Unix epoch, UTC")
    heard: _Count = Field(description="how many partitions of the jobs have told all up to the end")
    parts: _Count = Field(description="how many partitions there are")
    e2e_s: float = Field(description="seconds of jobs in the window; for an owner those of all jobs")
    effective_s: float | None = Field(description="seconds that consumed new data; null for an owner")
    lost_s: float = Field(description="seconds lost; for an owner in its stages alone")
    ett_pct_unweighted: float | None = Field(
        description="100 * effective_s / e2e_s; null for an owner, or without e2e_s"
    )
    gpu_e2e_s: float = Field(description="GPU-seconds of jobs in the window; for an owner those of all jobs")
    gpu_effective_s: float | None = Field(description="GPU-seconds that consumed new data; null for an owner")
    gpu_lost_s: float = Field(description="GPU-seconds lost; for an owner in its stages alone")
    gpu_held_s: float | None = Field(description="GPU-seconds without scheduling; null for an owner")
    gpu_waited_s: float | None = Field(description="GPU-seconds of scheduling: waited for, not held; null for an owner")
    ett_pct: float | None = Field(description="100 * gpu_effective_s / gpu_e2e_s; null for an owner, or without any")
    lost_pct: float | None = Field(description="100 * gpu_lost_s / gpu_e2e_s; null where gpu_e2e_s is 0")
    components: dict[str, float] = Field(description="GPU-seconds lost to each of the six components, always all six")
    stages: dict[str, float] = Field(description="GPU-seconds lost by stage, dotted names, none that is 0")
    tts_count: _Count = Field(description="jobs whose first batch falls into the window")
    tts_p50_s: float | None = Field(description="median of their times to start, right within 1 %; null without any")
    tts_p90_s: float | None = Field(description="nine in ten started in that time or less")
    tts_p99_s: float | None = Field(description="99 in 100 started in that time or less")
    ttr_count: _Count = Field(description="recoveries whose first batch falls into the window")
    ttr_p50_s: float | None = Field(description="median of their times to recover, right within 1 %; null without any")
    ttr_p90_s: float | None = Field(description="nine in ten recovered in that time or less")
    ttr_p99_s: float | None = Field(description="99 in 100 recovered in that time or less")
    nof: _Count = Field(description="attempts that failed or were preempted, and ended in the window")
    nof_infra: _Count = Field(description="nof without the causes user_code and config")
    nof_preempted: _Count = Field(description="attempts that were preempted")
    nof_per_1000_gpu_h: float | None = Field(description="nof per 1000 GPU-hours held; null where none were")
    mtbf_s: float | None = Field(description="seconds that jobs held GPUs, per failure; null without failures")
    live: dict[str, _Count] = Field(
        description="live jobs at the end of the window: pending, starting, training, recovering, none that is 0"
    )


def encode_window(window: Window) -> bytes:
    """Return a window as compact JSON in UTF-8."""
    return window.__pydantic_serializer__.to_json(window)


def decode_window(data: bytes) -> Window:
    """Return a window. Raises UpdateError, and nothing else."""
    return validated(Window, data, "window")
