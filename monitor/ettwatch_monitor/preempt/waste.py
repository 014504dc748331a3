"""What preempting one job would waste, now and right after its next checkpoint."""

from dataclasses import dataclass
from typing import Final

from ettwatch_monitor.preempt.running import Running

__all__ = ["UNKNOWN_RECOVERY_S", "Waste", "recovery_if_unknown", "waste_of"]

UNKNOWN_RECOVERY_S: Final = 1_800.0
"""Time to recover (seconds) that is taken where not one recovery was measured: half an hour."""
_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Waste:
    """What preempting a job costs beyond letting it run. GPU-seconds are seconds times its GPUs.

    Attributes:
        job: The job.
        lost_s: Work that is thrown away (seconds): training above the newest durable position; of a start-up, what it
            has done of it.
        recovery_s: Time (seconds) until it trains again; of a start-up without what it needs for that anyway.
        gpu_ms: All of it, in whole GPU-milliseconds: what plans add up, without rounding on the way.
        wait_s: In how many seconds its next checkpoint is expected to be durable; None where that is not known.
        after_gpu_ms: What preempting it would waste then, in GPU-milliseconds; None as `wait_s`.
    """

    job: Running
    lost_s: float
    recovery_s: float
    gpu_ms: int
    wait_s: float | None = None
    after_gpu_ms: int | None = None

    @property
    def gpu_s(self) -> float:
        """All of it, in GPU-seconds."""
        return self.gpu_ms / 1_000

    @property
    def after_gpu_s(self) -> float | None:
        """What it would waste right after its next checkpoint, in GPU-seconds."""
        return None if self.after_gpu_ms is None else self.after_gpu_ms / 1_000

    @property
    def saves_ms(self) -> int:
        """What waiting for the next checkpoint saves, in GPU-milliseconds; 0 where it saves nothing."""
        return 0 if self.after_gpu_ms is None else max(0, self.gpu_ms - self.after_gpu_ms)


def recovery_if_unknown(known: list[float]) -> float:
    """Return the time to recover (seconds) to take of a job of which it is not known: the longest of the others."""
    return max(known, default=UNKNOWN_RECOVERY_S)


def waste_of(job: Running, now: int, unknown_s: float = UNKNOWN_RECOVERY_S) -> Waste:
    """Return what preempting a job would waste.

    A job that trains loses `unsaved_s`, and what it did since; then it has to recover. One that starts loses what it
    has done of its start-up; of its recovery only what is longer than a start-up counts, since a start-up it needs
    anyway. Where one of the two is not known, all of both counts. What is further from the truth is so on the side
    that spares the job.

    Args:
        job: The job.
        now: The time (µs since the epoch).
        unknown_s: Its time to recover (seconds) where nobody knows it.
    """
    recovery = unknown_s if job.recovery_s is None else job.recovery_s
    if job.state == "starting":
        spent = max(0, now - job.started_us) / _US
        if job.startup_s is not None and job.recovery_s is not None:
            spent, recovery = min(spent, job.startup_s), max(0.0, recovery - job.startup_s)
        return Waste(job, spent, recovery, _gpu_ms(job.gpus, spent + recovery))
    lost = job.unsaved_s + max(0, now - job.seen_us) / _US
    whole = _gpu_ms(job.gpus, lost + recovery)
    if job.state == "ending" or job.saved_us is None or job.interval_s is None or job.lag_s is None:
        return Waste(job, lost, recovery, whole)
    wait = (job.saved_us - now) / _US + job.interval_s
    if wait <= 0:  # it is overdue: nobody knows when it comes
        return Waste(job, lost, recovery, whole)
    return Waste(job, lost, recovery, whole, wait, _gpu_ms(job.gpus, job.lag_s + recovery))


def _gpu_ms(gpus: int, seconds: float) -> int:
    return gpus * round(1_000 * seconds)
