"""One team, one owner, two sides of a comparison."""

from pydantic import Field

from ettwatch_monitor.api.shapes.base import Shape, Window
from ettwatch_monitor.api.shapes.fleet import Figures, Group, Point, StageLoss
from ettwatch_monitor.api.shapes.jobs import JobRow

__all__ = ["Compare", "Difference", "OwnerView", "Side", "TeamView"]


class TeamView(Shape):
    """GET /teams/{team}."""

    team: str
    window: Window
    total: Figures
    before: Figures | None
    components: dict[str, float]
    stages: list[StageLoss]
    models: list[Group]
    clusters: list[Group]
    statuses: dict[str, int]
    jobs: list[JobRow] = Field(description="the jobs of the window that lost most, at most 20")


class OwnerView(Shape):
    """GET /owners/{team}: what the stages cost that a team owns, whoever's jobs they are."""

    owner: str
    contacts: list[str]
    window: Window
    lost_gpu_h: float
    before_lost_gpu_h: float | None
    share_pct: float | None = Field(description="of all lost GPU-hours")
    stages: list[StageLoss]
    teams: dict[str, float] = Field(description="GPU-hours by team of the jobs; the empty name for none")
    models: dict[str, float]
    clusters: dict[str, float]
    step_s: int
    series: list[Point]


class Side(Shape):
    """One side of a comparison."""

    key: str
    jobs: int
    ett_pct: float | None
    total_gpu_h: float
    lost_gpu_h: float
    tts_s: float | None = Field(description="of a job; else the median")
    ttr_s: float | None = Field(description="the median of all recoveries")
    nof: int
    nof_per_1000_gpu_h: float | None
    components: dict[str, float] = Field(description="GPU-hours by component")
    stages: dict[str, float] = Field(description="GPU-hours by stage")


class Difference(Shape):
    """One stage on both sides, in percent of all GPU time of the side; the greatest difference first."""

    stage: str
    a_pct: float
    b_pct: float
    delta_pct: float = Field(description="b minus a, in percentage points")
    a_gpu_h: float
    b_gpu_h: float


class Compare(Shape):
    """GET /compare."""

    kind: str = Field(description="job, model, team, cluster, week (2026-W40) or version (values of the label)")
    label: str | None = Field(description="of versions: the label")
    window: Window | None = Field(description="null for jobs, weeks and versions")
    a: Side
    b: Side
    differences: list[Difference]
