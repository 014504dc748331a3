"""One broadcast that brings the plan of rank 0 to every rank, or the reason why there is none."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from ettwatch_trainer.remedies.communication.plan import Plan, PlanError, Table

# The message has one size that all ranks know beforehand, so that no second one has to tell it. Compressed, a table
# takes about ten bytes: room for some six thousand tables. Larger plans take a second broadcast.
ROOM = 1 << 16
_HEAD = 9  # a byte that says plan or refusal, eight for the length


def share_plan(plan: Plan | None = None, *, tables: Iterable[Table] | None = None, group: Any = None) -> Plan:
    """Return rank 0's plan on every rank, by one broadcast. Every rank calls it.

    Rank 0 gives the plan. Any other rank may give none, or one that must then be equal. `tables`: those of this
    rank's model; the plan must place just these. Where rank 0 has no plan, or one for another number of ranks, all
    ranks raise PlanError; nobody waits for a plan that does not come. Without torch.distributed, or with one rank,
    nothing is sent.
    """
    alone = not dist.is_initialized() or dist.get_world_size(group) == 1
    world = 1 if alone else dist.get_world_size(group)
    refusal = _refusal(plan, world) if alone or dist.get_rank(group) == 0 else None
    if alone:
        if refusal is not None or plan is None:
            raise PlanError(refusal)
        shared = plan
    else:
        shared = _broadcast(plan, refusal, group)
        if plan is not None and plan != shared:
            raise PlanError(
                f"rank {dist.get_rank(group)} has plan {plan.fingerprint} and rank 0 has {shared.fingerprint}: "
                "are their settings the same? Give the plan on rank 0 only, or the same plan everywhere"
            )
    _check(shared, tables)
    return shared


def _refusal(plan: Plan | None, world: int) -> str | None:
    if plan is None:
        return "rank 0 has no plan to share; make one there with make_plan(tables, world)"
    if plan.world != world:
        other = f"rank 0 has a plan for {plan.world} ranks and the job has {world}"
        return f"{other}; make one with make_plan(tables, {world})"
    return None


def _broadcast(plan: Plan | None, refusal: str | None, group: Any) -> Plan:
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend(group) == "nccl" else "cpu"
    told = b""
    if dist.get_rank(group) == 0:
        words = zlib.compress((refusal or ("" if plan is None else plan.to_json())).encode())
        told = bytes([refusal is not None]) + len(words).to_bytes(_HEAD - 1, "big") + words
    first = _send(told[:ROOM].ljust(ROOM, b"\0"), device, group)
    length = int.from_bytes(first[1:_HEAD], "big") + _HEAD
    if length > ROOM:
        first += _send(told[ROOM:].ljust(length - ROOM, b"\0"), device, group)
    words = zlib.decompress(first[_HEAD:length])
    if first[0]:
        raise PlanError(words.decode())
    return Plan.from_json(words.decode())


def _send(data: bytes, device: Any, group: Any) -> bytes:
    message = torch.frombuffer(bytearray(data), dtype=torch.uint8).to(device)
    dist.broadcast(message, group=group, group_src=0)
    return message.cpu().numpy().tobytes()


def _check(plan: Plan, tables: Iterable[Table] | None) -> None:
    if tables is None:
        return
    model, planned = set(tables), set(plan.tables)
    if model != planned:
        missing = sorted(table.name for table in model - planned)
        extra = sorted(table.name for table in planned - model)
        raise PlanError(
            f"plan {plan.fingerprint} is not for this model: it lacks {missing or 'nothing'} and has "
            f"{extra or 'nothing'} of its own (by name, rows and dim); make a plan for these tables"
        )
