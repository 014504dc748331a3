"""A plan as values for JSON."""

from collections.abc import Mapping
from typing import Any

from ettwatch_monitor.preempt.live import Live
from ettwatch_monitor.preempt.plan import Plan
from ettwatch_monitor.preempt.waste import Waste

__all__ = ["plain_plan"]


def plain_plan(plan: Plan, live: Live) -> dict[str, Any]:
    """Return a plan, and what was left out of it. What ends in `_s` is seconds, in `gpu_s` GPU-seconds, in `_us` µs."""
    chosen = {waste.job.job for waste in plan.chosen}
    later = plan.later
    return {
        "at_us": plan.at_us,
        "gpus": plan.gpus,
        "enough": plan.enough,
        "freed_gpus": plan.freed,
        "could_free_gpus": plan.could_free,
        "waste_gpu_s": plan.gpu_s,
        "exact": plan.exact,
        "at_least_gpu_s": plan.bound_ms / 1_000,
        "preempt": [waste.job.job for waste in plan.chosen],
        "later": None
        if later is None
        else {
            "waste_gpu_s": later.gpu_s,
            "freed_gpus": later.freed,
            "wait_s": later.wait_s,
            "preempt": [
                {"job": waste.job.job, "wait_s": wait} for waste, wait in zip(later.chosen, later.waits_s, strict=True)
            ],
        },
        "jobs": [_job(waste, chosen, plan.kept, live.recovery_from) for waste in plan.ranked],
        "left_out": [left._asdict() for left in live.left_out],
    }


def _job(waste: Waste, chosen: set[str], kept: frozenset[str], sources: Mapping[str, str]) -> dict[str, Any]:
    job = waste.job
    return {
        "job": job.job,
        "team": job.team or None,
        "model": job.model or None,
        "cluster": job.cluster or None,
        "attempt": job.attempt,
        "state": job.state,
        "gpus": job.gpus,
        "preempt": job.job in chosen,
        "excluded": job.job in kept,
        "waste_gpu_s": waste.gpu_s,
        "lost_s": waste.lost_s,
        "recovery_s": waste.recovery_s,
        "recovery_from": sources.get(job.job) or None,
        "interval_s": job.interval_s,
        "next_checkpoint_s": waste.wait_s,
        "waste_after_gpu_s": waste.after_gpu_s,
        "notes": list(job.notes),
    }
