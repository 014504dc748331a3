"""Figures of some jobs: sums of what the rules say of each."""

from collections.abc import Iterable
from statistics import fmean, median
from typing import NamedTuple

from ettwatch_schemas import COMPONENTS, JobSummary


class Figures(NamedTuple):
    """Figures of jobs. GPU-hours are weighted: a job may stand for several.

    Attributes:
        jobs: How many, weighted.
        ett_pct: Effective GPU time in percent of all; None where there is none.
        tts_p50_s: Median time to start; None where none started.
        ttr_mean_s: Mean time to recover; None where none did.
        total_gpu_h, held_gpu_h, effective_gpu_h, lost_gpu_h: GPU-hours; `held` is without scheduling.
        components: Lost GPU-hours by component.
    """

    jobs: float
    ett_pct: float | None
    tts_p50_s: float | None
    ttr_mean_s: float | None
    total_gpu_h: float
    held_gpu_h: float
    effective_gpu_h: float
    lost_gpu_h: float
    components: dict[str, float]

    @property
    def lost_held_gpu_h(self) -> float:
        """GPU-hours that were held in vain."""
        return self.held_gpu_h - self.effective_gpu_h


def figures(jobs: Iterable[tuple[JobSummary, float]]) -> Figures:
    """Sum up jobs and their weights."""
    number = total = held = effective = 0.0
    tts: list[float] = []
    ttr: list[float] = []
    components = dict.fromkeys(COMPONENTS, 0.0)
    for job, weight in jobs:
        number += weight
        total += weight * job.gpu_e2e_s / 3600
        held += weight * job.gpu_held_s / 3600
        effective += weight * job.gpu_effective_s / 3600
        if job.tts_s is not None:
            tts.append(job.tts_s)
        ttr += job.ttr_s
        for name, seconds in job.components.items():
            components[name] += weight * seconds * job.gpus / 3600
    return Figures(
        jobs=number,
        ett_pct=100 * effective / total if total else None,
        tts_p50_s=median(tts) if tts else None,
        ttr_mean_s=fmean(ttr) if ttr else None,
        total_gpu_h=total,
        held_gpu_h=held,
        effective_gpu_h=effective,
        lost_gpu_h=total - effective,
        components=components,
    )
