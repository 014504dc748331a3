"""Jobs: a list of them, one with its attempts, its timeline."""

from pydantic import Field

from ettwatch_monitor.api.shapes.base import Shape, Window
from ettwatch_monitor.api.shapes.fleet import OwnerOf

__all__ = [
    "AttemptRow",
    "JobDetail",
    "JobPage",
    "JobRow",
    "Mark",
    "PhaseRow",
    "Seg",
    "StartRow",
    "Timeline",
    "UsualStart",
]


class JobRow(Shape):
    """One job of a list."""

    job: str
    status: str
    team: str | None
    model: str | None
    cluster: str | None
    attempts: int
    gpus: int
    t0_us: int
    t1_us: int = Field(description="its end; now while it runs")
    e2e_s: float
    ett_pct: float | None
    tts_s: float | None
    recovery_s: float
    nof: int
    total_gpu_h: float
    effective_gpu_h: float
    lost_gpu_h: float
    worst_stage: str | None = Field(description="the stage that cost most, without effective_training")
    worst_s: float


class JobPage(Shape):
    """GET /jobs."""

    total: int = Field(description="how many fit, on all pages")
    page: int = Field(description="from 1")
    size: int
    sort: str
    jobs: list[JobRow]


class AttemptRow(Shape):
    """One attempt of a job."""

    attempt: int
    start_us: int
    end_us: int
    open: bool
    outcome: str | None
    cause: str | None
    exit_code: int | None
    signal: int | None
    message: str | None
    trigger: str | None
    gpus: int
    world_size: int | None
    trained: bool
    first_batch_us: int | None
    duration_s: float
    tts_s: float | None
    ttr_s: float | None
    recovery_s: float
    effective_s: float
    unsaved_s: float
    components: dict[str, float] = Field(description="seconds by component")
    stages: dict[str, float] = Field(description="seconds by stage")
    hidden_s: dict[str, float] = Field(description="seconds by phase that cost nothing: another was charged")
    flags: list[str]
    hosts: list[str] = Field(
        default=[],
        description="of the ranks that told phases, by their lowest ranks, at most 64; of the newest 100 attempts",
    )


class PhaseRow(Shape):
    """A phase as it was told. Phases overlap; segments do not."""

    attempt: int
    phase: str
    component: str
    start_us: int
    end_us: int
    open: bool
    background: bool = Field(description="hidden work: nothing waited for it")
    container: bool
    ranks: int
    last_rank: int
    last_host: str | None = Field(default=None, description="on which host that rank ran, where events say so")
    behind_s: float = Field(description="by how much the last rank kept the others waiting")
    charged_s: float
    hidden_s: float


class JobDetail(Shape):
    """GET /jobs/{job}: the numbers of a job."""

    row: JobRow
    labels: dict[str, str]
    effective_s: float
    ttr_s: list[float]
    nof_infra: int
    nof_preempted: int
    unsaved_s: float
    components: dict[str, float] = Field(description="seconds by component, always all six")
    stages: dict[str, float] = Field(description="seconds by stage")
    stages_gpu_h: dict[str, float] = Field(description="GPU-hours by stage")
    hidden_s: dict[str, float]
    owners: dict[str, OwnerOf] = Field(description="by stage; a stage without an owner is left out")
    flags: list[str]
    rules_version: str
    as_of_us: int
    attempts: list[AttemptRow]
    stragglers: list[PhaseRow] = Field(description="phases in which one rank kept the others waiting, the worst first")


class Seg(Shape):
    """A stretch of a job's time, charged to one stage. They follow each other without gaps."""

    attempt: int
    stage: str
    component: str
    start_us: int
    end_us: int
    gpus: int


class Mark(Shape):
    """A moment of a job."""

    at_us: int
    attempt: int
    kind: str = Field(description="first_batch, checkpoint (durable), failure, preemption, end")
    label: str


class Timeline(Shape):
    """GET /jobs/{job}/timeline: what to draw. With `truncated`, ask for a shorter time."""

    job: str
    t0_us: int
    t1_us: int
    from_us: int
    to_us: int
    segments: list[Seg]
    phases: list[PhaseRow]
    marks: list[Mark]
    truncated: bool = Field(description="there is more than was answered; the longest are here")


class StartRow(Shape):
    """One start: from hardware to the first batch of the first attempt."""

    job: str
    t0_us: int
    gpus: int
    tts_s: float


class UsualStart(Shape):
    """GET /jobs/{job}/usual: how other jobs of its model started, the newest 100 of the window."""

    job: str
    model: str | None
    window: Window
    starts: int = Field(description="how many others were looked at")
    tts_p50_s: float | None = Field(description="their time to start, median")
    stages: dict[str, float] = Field(
        description="medians by stage, in seconds, until their first batch; a start without a stage counts with 0"
    )
    warm: int = Field(description="of the newest 50 others: those that found all compiled code in a cache")
    cold: int = Field(description="of the newest 50 others: those that did not; where nobody says, a start is neither")
    caches: dict[str, str] = Field(description="of this job's own start, by stage: warm, cold or mixed")
    middle: StartRow | None = Field(description="the start in the middle of the others")
    recent: list[StartRow] = Field(description="the newest others, at most 5")
