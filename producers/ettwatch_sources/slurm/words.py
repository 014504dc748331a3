"""Slurm's own words for states and reasons, and what each means here.

States: `sacct` (JOB STATE CODES) and `squeue`. Reasons: src/common/job_state_reason.c of Slurm 20.02 to 25.11. Words
that are in neither table are kept as they stand and flagged `unknown_word`.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ettwatch_schemas import Cause, Outcome


class State(NamedTuple):
    """What a state means: how the attempt ended, or that it has not."""

    outcome: Outcome | None
    """None: the attempt is open, or has not begun."""
    cause: Cause
    again: bool
    """Whether the job may run again under the same id."""
    means: str


def _open(means: str) -> State:
    return State(None, "unknown", False, means)


STATES: Final[Mapping[str, State]] = MappingProxyType(
    {
        "BOOT_FAIL": State("failed", "hardware", True, "a node failed to boot"),
        "CANCELLED": State("cancelled", "unknown", False, "cancelled by its user or an administrator"),
        "COMPLETED": State("succeeded", "unknown", False, "all processes ended with exit code 0"),
        "COMPLETING": _open("the job is ending"),
        "CONFIGURING": _open("nodes are allocated and are being made ready"),
        "DEADLINE": State("failed", "timeout", False, "its deadline passed"),
        "EXPEDITING": _open("requeued at once after a failure, at the highest priority"),
        "FAILED": State("failed", "unknown", False, "an exit code other than 0, or another failure"),
        "LAUNCH_FAILED": State("failed", "hardware", True, "the job could not be launched on the node"),
        "NODE_FAIL": State("failed", "hardware", True, "an allocated node failed"),
        "OUT_OF_MEMORY": State("failed", "host_memory", False, "out of memory"),
        "PENDING": _open("waits for resources"),
        "POWER_UP_NODE": _open("nodes are being powered up"),
        "PREEMPTED": State("preempted", "capacity", True, "preempted by another job"),
        "RECONFIG_FAIL": State("failed", "hardware", True, "reconfiguring a node failed"),
        "REQUEUED": State("preempted", "unknown", True, "requeued before it ended, by whom is not told"),
        "REQUEUE_FED": State("preempted", "unknown", True, "requeued by a federation"),
        "REQUEUE_HOLD": State("preempted", "unknown", True, "requeued and held"),
        "RESIZING": _open("its size is being changed"),
        "RESV_DEL_HOLD": _open("held because its reservation was deleted"),
        "REVOKED": State("cancelled", "unknown", True, "another cluster of the federation started it"),
        "RUNNING": _open("runs"),
        "SIGNALING": _open("is being signalled"),
        "SPECIAL_EXIT": State("failed", "user_code", True, "requeued in a special state because of its exit code"),
        "STAGE_OUT": _open("files are being staged out"),
        "STOPPED": _open("stopped by a signal, the allocation is kept"),
        "SUSPENDED": _open("suspended, its processors were given to others"),
        "TIMEOUT": State("failed", "timeout", False, "its time limit passed"),
        "UPDATE_DB": _open("a record of the database is being updated"),
    }
)
"""Every state of a job."""

SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{"BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING"},
        **{"DL": "DEADLINE", "EX": "EXPEDITING", "F": "FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY"},
        **{"PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING", "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED"},
        **{"RH": "REQUEUE_HOLD", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED", "S": "SUSPENDED"},
        **{"SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED", "TO": "TIMEOUT"},
        **{"LF": "LAUNCH_FAILED", "RC": "RECONFIG_FAIL", "PU": "POWER_UP_NODE"},
    }
)
"""The short forms of states."""


class Reason(NamedTuple):
    """What a reason means: why the job waits, or why it ended."""

    waits: str
    """What it waits for, in a word; empty where the reason is about an end."""
    cause: Cause | None
    """The cause where an attempt ended for it; None where it says nothing of an end."""


_WAITS: Final = {
    "queue": (
        *("Priority", "Resources", "Prolog", "Cleaning", "None", "SchedDefer", "JobArrayTaskLimit", "FedJobLock"),
        *("NodesAvail", "Scheduling", "TooBusy"),
    ),
    "dependency": ("Dependency", "DependencyNeverSatisfied", "BeginTime"),
    "held": (
        "JobHeldAdmin",
        "JobHeldUser",
        "JobHoldMaxRequeue",
        "AdminHold",
        "UserHold",
        "launch_failed_requeued_held",
    ),
    "maintenance": (
        *("PartitionDown", "PartitionInactive", "ReqNodeNotAvail", "FrontEndDown", "Reservation"),
        *("ReservationDeleted", "ReservationInvalid", "Maint", "PowerNotAvail", "PowerReserved"),
    ),
    "licenses": ("Licenses", "BurstBufferResources", "BurstBufferStageIn"),
    "limits": (
        *("PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig", "AccountingPolicy", "AccountNotAllowed"),
        *("QOSNotAllowed", "QOSUsageThreshold", "QOSJobLimit", "QOSResourceLimit", "QOSTimeLimit"),
        *("AssociationJobLimit", "AssociationResourceLimit", "AssociationTimeLimit", "MaxMemPerLimit"),
    ),
}
_LIMIT: Final = re.compile(r"(?:QOS|Assoc)(?:Grp|Max|Min)\w*|Max\w+PerAccount")
_ENDS: Final[Mapping[str, Cause]] = {
    "BadConstraints": "config",
    "BurstBufferOperation": "storage",
    "Constraints": "config",
    "DeadLine": "timeout",
    "InactiveLimit": "timeout",
    "InvalidAccount": "config",
    "InvalidQOS": "config",
    "JobLaunchFailure": "hardware",
    "NodeDown": "hardware",
    "NonZeroExitCode": "unknown",
    "OutOfMemory": "host_memory",
    "RaisedSignal": "unknown",
    "SystemFailure": "hardware",
    "TimeLimit": "timeout",
}


def reason_of(word: str) -> Reason | None:
    """Return what a reason means, None where the word is not known.

    `RaisedSignal:53(…)` and `ReqNodeNotAvail, UnavailableNodes:…` are known by their first word.
    """
    name = re.split(r"[,:(\s]", word.strip().strip("()"), maxsplit=1)[0]
    if name in _ENDS:
        return Reason("", _ENDS[name])
    for waits, names in _WAITS.items():
        if name in names:
            return Reason(waits, None)
    if _LIMIT.fullmatch(name):
        return Reason("limits", None)
    return None


def state_of(word: str) -> tuple[str, State | None]:
    """Return the name of a state (`CANCELLED by 1000` and `CA` are `CANCELLED`), and what it means if it is known."""
    name = word.strip().split(" ")[0].rstrip("+").upper()
    name = SHORT.get(name, name)
    return name, STATES.get(name)


REASONS: Final = tuple(sorted({*(name for names in _WAITS.values() for name in names), *_ENDS}))
"""The reasons that are known by name; those of limits (`QOSGrp…`, `AssocMax…`, `Max…PerAccount`) by their pattern."""
