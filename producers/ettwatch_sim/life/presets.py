"""Scenarios that are there by name."""

from typing import Final

from ettwatch_sim.life.profiles import PROFILES
from ettwatch_sim.life.remedies import Remedy
from ettwatch_sim.life.scenario import Cluster, Scenario, Team, Travel

_TEAMS: Final = (
    ("ads", ("ctr-large", "ctr-small"), 24.0, 0.3),
    ("feed", ("ranker-large", "ranker-small"), 14.0, 0.3),
    ("search", ("ranker-small", "retrieval"), 20.0, 0.5),
    ("video", ("sequence", "retrieval"), 10.0, 0.2),
    ("shop", ("ctr-small", "ranker-small"), 30.0, 0.4),
    ("maps", ("retrieval",), 9.0, 0.6),
    ("music", ("retrieval", "ctr-small"), 12.0, 0.3),
    ("news", ("ranker-small",), 16.0, 0.5),
    ("mail", ("ctr-small",), 18.0, 0.2),
    ("research", ("foundation", "sequence"), 3.0, 0.0),
)

FLEET: Final = "fleet"
"""The name of the fleet of ten teams on three clusters."""

PRESETS: Final = (FLEET, *PROFILES)
"""All names: the fleet, and each profile of a model by itself."""


def preset(name: str) -> Scenario:
    """Return the scenario of a name: ten teams on three clusters, or one model by itself. Raises KeyError."""
    if name != FLEET:
        return alone(name)
    return Scenario(
        clusters=(
            Cluster(name="east", gpus=1_536),
            Cluster(name="west", gpus=1_280, storms_per_week=3),
            Cluster(name="north", gpus=1_024, slow_hosts=0.04),
        ),
        teams=tuple(
            Team(name=team, models=models, jobs_per_day=jobs, nightly=nightly) for team, models, jobs, nightly in _TEAMS
        ),
        travel=Travel(jitter_s=2, late=0.01, late_s=1_800, doubled=0.02, skewed=0.05, skew_s=0.2),
    )


def alone(name: str, remedies: tuple[Remedy, ...] = ()) -> Scenario:
    """Return a scenario of one team that trains one profile on a cluster of its own. Raises KeyError."""
    model = PROFILES[name]
    per_day = 80 / model.work_h  # five or six at one time
    gpus = model.hosts * 8 * 12
    return Scenario(
        clusters=(Cluster(name="own", gpus=gpus),),
        teams=(Team(name="team", models=(model.name,), jobs_per_day=per_day),),
        remedies=remedies,
    )
