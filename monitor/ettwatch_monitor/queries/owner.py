"""One owner: what its stages cost, whoever's jobs they are."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.shapes import OwnerView, StageLoss
from ettwatch_monitor.queries.fleet import comparable, whole_before, window_of
from ettwatch_monitor.queries.ownership import Loss, losses, owner_of
from ettwatch_monitor.queries.rows import hours, per_cent
from ettwatch_monitor.queries.scope import Scope
from ettwatch_monitor.queries.series import lost_points
from ettwatch_monitor.queries.span import Span

__all__ = ["NOBODY", "owner_view"]

NOBODY: Final = "-"
"""The name by which the stages are asked for that nobody owns."""


def owner_view(store: Store, owners: Owners, span: Span, name: str) -> OwnerView | None:
    """Return what an owner answers for; None if no rule names it and nothing is its. Raises StoreError."""
    everything = losses(store, owners, span, Scope(), span.step)
    own = [loss for loss in everything if _team(loss) == name]
    named = {rule.owner.team for rule in owners.rules}
    if not own and name != NOBODY and name not in named:
        return None
    before = whole_before(store, span)
    earlier = losses(store, owners, before, Scope()) if before is not None else []
    if not comparable(*(sum(loss.gpu_us for loss in told) for told in (everything, earlier))):
        earlier = []
    total = sum(loss.gpu_us for loss in own)
    return OwnerView(
        owner=name,
        contacts=sorted({r.owner.contact for r in owners.rules if r.owner.team == name and r.owner.contact}),
        window=window_of(span),
        lost_gpu_h=hours(total),
        before_lost_gpu_h=hours(sum(loss.gpu_us for loss in earlier if _team(loss) == name)) if earlier else None,
        share_pct=per_cent(total, sum(loss.gpu_us for loss in everything)),
        stages=_stages(own),
        teams=_by(own, "team"),
        models=_by(own, "model"),
        clusters=_by(own, "cluster"),
        step_s=span.step // 1_000_000,
        series=[point.model_copy(update={"key": None}) for point in lost_points(own)],
    )


def _team(loss: Loss) -> str:
    return loss.owner.team if loss.owner is not None else NOBODY


def _by(told: Iterable[Loss], dimension: str) -> dict[str, float]:
    found: dict[str, int] = defaultdict(int)
    for loss in told:
        found[getattr(loss, dimension)] += loss.gpu_us
    return {name: hours(us) for name, us in sorted(found.items(), key=lambda item: (-item[1], item[0]))}


def _stages(told: Iterable[Loss]) -> list[StageLoss]:
    gpu: dict[str, int] = defaultdict(int)
    jobs: dict[str, int] = defaultdict(int)
    who: dict[str, Loss] = {}
    for loss in told:
        gpu[loss.stage] += loss.gpu_us
        jobs[loss.stage] += loss.us
        who.setdefault(loss.stage, loss)
    return [
        StageLoss(
            stage=stage,
            component=stage.partition(".")[0],
            gpu_h=hours(us),
            job_h=hours(jobs[stage]),
            owner=owner_of(who[stage].owner),
        )
        for stage, us in sorted(gpu.items(), key=lambda item: (-item[1], item[0]))
    ]
