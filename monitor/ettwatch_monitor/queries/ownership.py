"""Who owns what was lost: the rules in the database, and the lost time by owner, stage and whose jobs it was."""

from typing import NamedTuple, cast

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owner, Owners, Rule
from ettwatch_monitor.api.shapes import OwnerOf, StageLoss
from ettwatch_monitor.queries.figures import rolled
from ettwatch_monitor.queries.rows import hours
from ettwatch_monitor.queries.scope import Scope
from ettwatch_monitor.queries.span import Span

__all__ = ["Loss", "losses", "owner_of", "read_owners", "stage_losses"]

EFFECTIVE = "effective_training"


class Loss(NamedTuple):
    """What a stage cost jobs of a team, model and cluster; no name is the empty text."""

    at: int
    """Begin of the time it was in (µs)."""
    team: str
    model: str
    cluster: str
    stage: str
    gpu_us: int
    us: int
    owner: Owner | None


def read_owners(store: Store) -> Owners:
    """Return the rules that count. Raises StoreError."""
    rows = store.query("SELECT stage_prefix, cluster, model, team, system, contact FROM owners").rows
    return Owners(
        "the view owners",
        tuple(
            Rule(str(stage), _text(cluster), _text(model), Owner(str(team), _text(system), _text(contact)), 0)
            for stage, cluster, model, team, system, contact in rows
        ),
    )


def losses(store: Store, owners: Owners, span: Span, scope: Scope, step: int | None = None) -> list[Loss]:
    """Return the lost time with its owners. Raises StoreError.

    Args:
        store: The database.
        owners: The rules.
        span: The time.
        scope: Whose jobs.
        step: HOUR_US, DAY_US or WEEK_US for each such time by itself; None for the whole span.
    """
    source, params = rolled(span, scope, step)
    rows = store.query(
        "SELECT at, toString(team), toString(model), toString(cluster), toString(s) AS of_stage, sum(g), sum(u) "
        f"FROM {source} ARRAY JOIN stage AS s, stage_gpu_us AS g, stage_us AS u "
        f"WHERE s != '{EFFECTIVE}' GROUP BY at, team, model, cluster, of_stage",
        params,
    ).rows
    found = []
    for begin, team, model, cluster, stage, gpu_us, us in rows:
        owner = owners.of(str(stage), _text(cluster), _text(model))
        start = cast(int, begin) * 1_000_000 if step is not None else span.start
        found.append(
            Loss(start, str(team), str(model), str(cluster), str(stage), cast(int, gpu_us), cast(int, us), owner)
        )
    return found


def stage_losses(stages_gpu_us: dict[str, int], stages_us: dict[str, int], owners: Owners) -> list[StageLoss]:
    """Return what each stage cost, the most first."""
    return [
        StageLoss(
            stage=stage,
            component=stage.partition(".")[0],
            gpu_h=hours(gpu_us),
            job_h=hours(stages_us.get(stage, 0)),
            owner=owner_of(owners.of(stage)),
        )
        for stage, gpu_us in sorted(stages_gpu_us.items(), key=lambda item: (-item[1], item[0]))
        if stage != EFFECTIVE
    ]


def owner_of(owner: Owner | None) -> OwnerOf | None:
    """Return an owner as it is answered."""
    return None if owner is None else OwnerOf(team=owner.team, system=owner.system, contact=owner.contact)


def _text(value: object) -> str | None:
    return str(value) if value else None
