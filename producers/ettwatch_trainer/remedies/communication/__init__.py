"""Start-up with one message: shard metadata built by each rank from one broadcast plan; groups made once."""

from ettwatch_trainer.remedies.communication.calls import CountCalls
from ettwatch_trainer.remedies.communication.groups import Groups
from ettwatch_trainer.remedies.communication.metadata import (
    Shard,
    TableMetadata,
    gathered_metadata,
    local_metadata,
)
from ettwatch_trainer.remedies.communication.plan import Plan, PlanError, Table, make_plan
from ettwatch_trainer.remedies.communication.share import share_plan

__all__ = [
    "CountCalls",
    "Groups",
    "Plan",
    "PlanError",
    "Shard",
    "Table",
    "TableMetadata",
    "gathered_metadata",
    "local_metadata",
    "make_plan",
    "share_plan",
]
