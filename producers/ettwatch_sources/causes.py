"""What an error message says of the cause of a failure. What no rule knows is unknown, never guessed."""

import re
from typing import Final

from ettwatch_schemas import Cause

_RULES: Final[tuple[tuple[Cause, str], ...]] = (
    ("gpu_memory", r"cuda out of memory|outofmemoryerror|cublas_status_alloc_failed|hip out of memory"),
    ("host_memory", r"oom[- ]?kill|cannot allocate memory|memoryerror|std::bad_alloc|out of memory"),
    (
        "hardware",
        r"uncorrectable|ecc error|\bxid\b|nvlink|fallen off the bus|illegal instruction|device-side|"
        r"cuda error: (unspecified launch failure|hardware|device)|cudaerrordevicesunavailable|node ?fail",
    ),
    (
        "network",
        r"nccl|gloo|connection (reset|refused|closed|timed out)|broken pipe|socket|rendezvous|ibv_|infiniband|"
        r"dist(networkerror|storeerror|backenderror)|network is unreachable|no route to host",
    ),
    ("storage", r"no space left|disk quota|input/output error|stale file handle|read-only file system"),
    ("timeout", r"timed? ?out|timeouterror|deadline exceeded|time limit"),
    ("config", r"modulenotfounderror|no module named|importerror|command not found|no such file or directory"),
    ("user_code", r"\b(value|type|key|index|attribute|assertion|name|zerodivision|runtime|notimplemented)error\b"),
)
_COMPILED: Final = tuple((cause, re.compile(pattern, re.IGNORECASE)) for cause, pattern in _RULES)


def cause_of(text: str) -> Cause:
    """Return the cause that an error message names; `unknown` where no rule knows it."""
    short = text[:20_000]
    for cause, pattern in _COMPILED:
        if pattern.search(short):
            return cause
    return "unknown"
