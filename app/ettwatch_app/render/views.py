"""What is rendered: values only, whether they came from SQL or from a snapshot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ettwatch_core.ownership import Owners
from ettwatch_schemas import AttemptSummary, JobSummary, PhaseSpan, Segment


class Mark(NamedTuple):
    """A point in the life of an attempt that is not a stretch of time."""

    attempt: int
    ts: int
    kind: Literal["checkpoint"]


@dataclass(frozen=True, slots=True)
class JobView:
    """All that is shown of one job."""

    summary: JobSummary
    attempts: Sequence[AttemptSummary]
    segments: Sequence[Segment]
    owners: Owners
    spans: Sequence[PhaseSpan] = ()
    marks: Sequence[Mark] = ()


Order = Literal["newest", "lost", "ett", "tts", "nof"]
"""Which jobs come first: by their end, GPU-hours lost, lowest ETT%, slowest start, or failures."""


@dataclass(frozen=True, slots=True)
class FleetView:
    """All that is shown of many jobs: `jobs` may be fewer than there are."""

    jobs: Sequence[JobSummary]
    owners: Owners
    number: int
    ett_pct: float | None
    """Weighted by GPUs."""
    mean_ett_pct: float | None
    """Of all jobs alike."""
    nof: int
    gpu_e2e_s: float
    gpu_stage_s: Mapping[str, float]
    """GPU-seconds by stage, effective training included."""
    order: Order = "newest"
    """Of `jobs`."""
