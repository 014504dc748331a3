"""The policy: which jobs to preempt so that enough GPUs are free and the least is wasted. It preempts nothing."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ettwatch_monitor.preempt.cover import Item, cheapest
from ettwatch_monitor.preempt.running import Running, RunningError
from ettwatch_monitor.preempt.waste import Waste, recovery_if_unknown, waste_of

__all__ = ["Later", "Plan", "rank"]


@dataclass(frozen=True, slots=True)
class Later:
    """A plan that waits: each of its jobs is preempted now, or right after its next checkpoint.

    Attributes:
        chosen: Which, those first that wait least.
        waits_s: For each of them how long (seconds) to wait; 0 is now.
        freed: GPUs that they hold together.
        gpu_ms: What it wastes, in GPU-milliseconds.
    """

    chosen: tuple[Waste, ...]
    waits_s: tuple[float, ...]
    freed: int
    gpu_ms: int

    @property
    def gpu_s(self) -> float:
        """What it wastes, in GPU-seconds."""
        return self.gpu_ms / 1_000

    @property
    def wait_s(self) -> float:
        """After how many seconds all its GPUs are free."""
        return max(self.waits_s, default=0.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to preempt.

    Attributes:
        at_us: For when it was made (µs since the epoch).
        gpus: How many GPUs were asked for.
        ranked: All jobs, those first of which a GPU costs least; equal ones by name. Those that may not be preempted
            are among them.
        kept: Names of those that may not be preempted.
        chosen: Whom to preempt, in the order of `ranked`; empty where not enough can be freed.
        freed: GPUs that they hold together.
        could_free: GPUs of all that may be preempted.
        gpu_ms: What preempting them wastes, in GPU-milliseconds.
        exact: Whether no other set that frees enough wastes less.
        bound_ms: No set that frees enough wastes less than this, in GPU-milliseconds.
        later: What is cheaper still, for those who can wait; None where nothing is.
    """

    at_us: int
    gpus: int
    ranked: tuple[Waste, ...]
    kept: frozenset[str]
    chosen: tuple[Waste, ...]
    freed: int
    could_free: int
    gpu_ms: int
    exact: bool
    bound_ms: int
    later: Later | None

    @property
    def enough(self) -> bool:
        """Whether it frees what was asked for."""
        return self.freed >= self.gpus

    @property
    def gpu_s(self) -> float:
        """What preempting them wastes, in GPU-seconds."""
        return self.gpu_ms / 1_000


def rank(
    jobs: Iterable[Running],
    gpus: int,
    now: int,
    *,
    keep: Collection[str] | Callable[[Running], bool] = (),
    patience_s: float = 0.0,
) -> Plan:
    """Rank running jobs by what preempting each now would waste, and choose the cheapest set that frees enough.

    The order of `jobs` makes no difference. The choice is exact up to a size that few fleets reach (see `cheapest`);
    `exact` says so. Of equally cheap sets the one that frees least is taken.

    Args:
        jobs: Those that run. Names must differ.
        gpus: How many GPUs have to be free, at least 1.
        now: The time (µs since the epoch).
        keep: Those that may not be preempted: names, or a function that tells.
        patience_s: How long (seconds) there may be waited for checkpoints; 0 is not at all.

    Raises:
        RunningError: Two jobs of one name, or a number of GPUs that is none.
    """
    if isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1:
        raise RunningError(f"{gpus!r} GPUs cannot be freed; give a whole number of at least 1")
    all_ = sorted(jobs, key=lambda job: job.job)
    for one, other in pairwise(all_):
        if one.job == other.job:
            raise RunningError(f"job {one.job!r} is there twice; give its open attempt only")
    unknown = recovery_if_unknown([job.recovery_s for job in all_ if job.recovery_s is not None])
    ranked = sorted((waste_of(job, now, unknown) for job in all_), key=_price)
    kept = frozenset(job.job for job in all_ if (keep(job) if callable(keep) else job.job in keep))
    able = [waste for waste in ranked if waste.job.job not in kept]
    could = sum(waste.job.gpus for waste in able)
    found = cheapest([Item(w.job.gpus, w.gpu_ms, w.job.job) for w in able], gpus)
    if found is None:
        return Plan(now, gpus, tuple(ranked), kept, (), 0, could, 0, True, 0, None)
    chosen = tuple(able[i] for i in found.chosen)
    later = _later(able, gpus, patience_s, found.cost) if patience_s > 0 else None
    return Plan(now, gpus, tuple(ranked), kept, chosen, found.size, could, found.cost, found.exact, found.bound, later)


def _later(able: Sequence[Waste], gpus: int, patience_s: float, now_ms: int) -> Later | None:
    """Return the cheapest plan in which jobs may wait for their next checkpoints; None if it is no cheaper."""
    waiting = {w.job.job for w in able if w.wait_s is not None and w.wait_s <= patience_s and w.saves_ms}
    if not waiting:
        return None
    items = [Item(w.job.gpus, w.gpu_ms - w.saves_ms if w.job.job in waiting else w.gpu_ms, w.job.job) for w in able]
    found = cheapest(items, gpus)
    if found is None or found.cost >= now_ms:
        return None
    pairs = [(able[i].wait_s or 0.0 if able[i].job.job in waiting else 0.0, able[i]) for i in found.chosen]
    pairs.sort(key=lambda pair: (pair[0], *_price(pair[1])))
    return Later(tuple(w for _, w in pairs), tuple(wait for wait, _ in pairs), found.size, found.cost)


def _price(waste: Waste) -> tuple[float, str]:
    """Seconds that are lost for each GPU that is freed, and the name."""
    return waste.gpu_ms / waste.job.gpus, waste.job.job
