"""What two ranks do in the tests of communication; each returns what it saw."""

from __future__ import annotations

import time
from typing import Any

import torch.distributed as dist

from ettwatch_trainer.remedies.caches import rank_zero_first
from ettwatch_trainer.remedies.communication import (
    CountCalls,
    Groups,
    Plan,
    PlanError,
    Table,
    gathered_metadata,
    local_metadata,
    make_plan,
    share_plan,
)

TABLES = [Table(f"t{number}", 10 + 7 * number, 8) for number in range(20)]
MANY = [Table(f"table_{number * 7919 % 100_003}_{number**5 % 99_991}", 1 + number, 8) for number in range(20_000)]


def everything(rank: int) -> dict[str, Any]:
    """All that is asked of two ranks, in an order that both keep."""
    return {
        "shared": shared(rank),
        "metadata": metadata(rank),
        "refused": refused(rank),
        "large": large(rank),
        "groups": groups(),
        "first": first(rank),
    }


def shared(rank: int) -> dict[str, Any]:
    with CountCalls() as count:
        plan = share_plan(make_plan(TABLES, 2) if rank == 0 else None, tables=TABLES)
    return {"plan": plan, "calls": dict(count.calls), "groups": count.groups}


def metadata(rank: int) -> dict[str, Any]:
    plan = make_plan(TABLES, 2)
    with CountCalls() as locally:
        local = local_metadata(plan, rank)
    with CountCalls() as asking:
        gathered = gathered_metadata(plan, rank)
    return {"local": local, "gathered": gathered, "locally": locally.total, "asking": asking.total}


def _share(*given: Any, **named: Any) -> str:
    try:
        share_plan(*given, **named)
    except PlanError as error:
        return str(error)
    return "shared"


def refused(rank: int) -> dict[str, str]:
    plan = make_plan(TABLES, 2)
    other = make_plan(TABLES[:-1], 2)
    return {
        "missing": _share(None),
        "other": _share(plan if rank == 0 else other),
        "equal": _share(Plan.from_json(plan.to_json())),
        "world": _share(make_plan(TABLES, 3) if rank == 0 else None),
        "tables": _share(plan if rank == 0 else None, tables=TABLES[1:]),
    }


def large(rank: int) -> dict[str, Any]:
    plan = make_plan(MANY, 2)
    with CountCalls() as count:
        got = share_plan(plan if rank == 0 else None)
    return {"equal": got == plan, "calls": dict(count.calls)}


def groups() -> dict[str, Any]:
    kept = Groups()
    with CountCalls() as count:
        same = kept.get([0, 1]) is kept.get() is dist.group.WORLD
        one, two = kept.get([0]), kept.get([0])
        saving, again = kept.get(purpose="saving"), kept.get([1, 0], purpose="saving")
    return {
        "world": same,
        "again": one is two and saving is again,
        "apart": saving is not dist.group.WORLD,
        "made": count.groups,
        "kept": len(kept),
    }


def first(rank: int) -> dict[str, Any]:
    with rank_zero_first() as is_first:
        began = time.time()
        if rank == 0:
            time.sleep(0.3)
        ended = time.time()
    failed = False
    try:
        with rank_zero_first():
            if rank == 0:
                raise RuntimeError("no compiler")
    except RuntimeError:
        failed = True
    return {"first": is_first, "began": began, "ended": ended, "failed": failed}
