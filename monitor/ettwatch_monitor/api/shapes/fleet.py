"""The fleet, a team, an owner: figures, and figures over time."""

from pydantic import Field

from ettwatch_monitor.api.shapes.base import Shape, Window

__all__ = ["Figures", "Fleet", "Group", "OwnerOf", "Point", "Series", "StageLoss"]


class Figures(Shape):
    """Figures of some jobs in a window. `total = effective + lost`, `held = total - waited`."""

    ett_pct: float | None = Field(description="effective GPU time in percent of all; null where there is none")
    ett_pct_jobs: float | None = Field(description="the same with each job counted alike, whatever its GPUs")
    total_gpu_h: float
    effective_gpu_h: float
    lost_gpu_h: float
    waited_gpu_h: float = Field(description="scheduling: waited for, not held")
    held_gpu_h: float
    unsaved_gpu_h: float = Field(description="work that failures discarded")
    job_h: float = Field(description="hours of jobs, whatever their GPUs")
    jobs: int | None = Field(description="jobs that had time in the window; null where it is not counted")
    attempts: int
    starts: int
    tts_p50_s: float | None
    tts_p90_s: float | None
    tts_p99_s: float | None
    recoveries: int
    ttr_p50_s: float | None
    ttr_p90_s: float | None
    ttr_p99_s: float | None
    nof: int = Field(description="failures: attempts that failed or were preempted")
    nof_infra: int
    nof_preempted: int
    nof_per_1000_gpu_h: float | None
    mtbf_h: float | None
    causes: dict[str, int] = Field(description="failures by cause; the empty name where nobody knows")


class OwnerOf(Shape):
    """Who answers for a stage."""

    team: str
    system: str | None = None
    contact: str | None = None


class StageLoss(Shape):
    """What one stage cost; the most first."""

    stage: str
    component: str
    gpu_h: float
    job_h: float
    owner: OwnerOf | None = Field(
        default=None, description="by the ownership file, without regard to overrides by cluster and model"
    )


class Group(Shape):
    """A team, model, cluster or owner; the one that lost most first."""

    key: str | None = Field(description="null for jobs that name none; of owners: nobody is named")
    lost_gpu_h: float
    before_lost_gpu_h: float | None = Field(description="the same in the window before, of equal length")
    figures: Figures | None = Field(description="null for owners, who own stages and not jobs")
    components: dict[str, float] = Field(
        description="GPU-hours by component; effective_training is one (not of owners)"
    )
    contact: str | None = None


class Fleet(Shape):
    """GET /fleet: the whole fleet in a window, and the same by team, model, cluster or owner."""

    window: Window
    total: Figures
    before: Figures | None = Field(
        description="the window before, of equal length; null where less than a tenth of the GPU-hours were"
    )
    components: dict[str, float] = Field(description="GPU-hours by component; effective_training is one")
    stages: list[StageLoss] = Field(description="without effective_training")
    by: str = Field(description="team, model, cluster or owner")
    groups: list[Group]
    statuses: dict[str, int] = Field(description="jobs by status, of those that had time in the window")
    as_of_us: int | None = Field(description="until when the figures are made; null where there are none")


class Point(Shape):
    """One hour, day or week. Times without anything have no point."""

    at_us: int
    key: str | None = Field(description="the team, model, cluster or owner; null for all together, or none named")
    ett_pct: float | None
    total_gpu_h: float
    effective_gpu_h: float
    lost_gpu_h: float
    waited_gpu_h: float
    jobs: int = Field(description="jobs that had time in the hour or day; 0 where it is not counted")
    nof: int
    tts_p50_s: float | None
    ttr_p50_s: float | None
    components: dict[str, float] = Field(description="GPU-hours by component")


class Series(Shape):
    """GET /fleet/series: figures over time, in order of time."""

    window: Window
    step_s: int = Field(description="3600, 86400 or 604800 (weeks begin on Monday)")
    by: str | None
    keys: list[str | None] = Field(description="what is in the points, the largest first; at most 20")
    points: list[Point]
