"""Simulated fleets, seen by the core, and small scenarios."""

from collections.abc import Iterable

from ettwatch_core import JobState, Rules, Snapshot, apply, snapshot
from ettwatch_schemas import Event
from ettwatch_sim.life import REMEDIES, Cluster, Injection, Scenario, Team

__all__ = ["RULES", "fold", "small"]

RULES = Rules(lateness=None)


def fold(events: Iterable[Event]) -> dict[str, Snapshot]:
    """What the core says of each job."""
    states: dict[str, JobState] = {}
    for event in events:
        if event.job not in states:
            states[event.job] = JobState(event.job)
        apply(states[event.job], event, RULES)
    return {job: snapshot(state, RULES) for job, state in states.items()}


def small(days: float = 1.0, *injections: Injection, **fields: object) -> Scenario:
    """Four teams with and without remedies on two clusters, one with many slow hosts."""
    base = Scenario(
        days=days,
        clusters=(
            Cluster(name="c1", gpus=256, slow_hosts=0.2, storms_per_week=40, storm_share=0.9),
            Cluster(name="c2", gpus=320),
        ),
        teams=(
            Team(name="a", models=("ctr-small",), jobs_per_day=8),
            Team(name="b", models=("ctr-large",), jobs_per_day=3, remedies=REMEDIES),
            Team(name="c", models=("ranker-small", "retrieval"), jobs_per_day=6, failures=3),
            Team(name="d", models=("sequence",), jobs_per_day=2, remedies=("overlap", "async_checkpoints"), failures=2),
        ),
        injections=injections,
    )
    return base.but(**fields)
