"""Signed sums of whole numbers by name: what is added can be taken away again, and nothing is left of it.

Names are short, for there are many: a letter that says what is counted, and of what.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

__all__ = [
    "BASE_GPU",
    "BASE_WALL",
    "FAILURES",
    "GPU",
    "INFRA",
    "LIVE",
    "PREEMPTED",
    "TTR",
    "TTS",
    "WALL",
    "Amounts",
    "Buckets",
    "add",
    "coarser",
    "pack",
    "total",
    "unpack",
]

Amounts: TypeAlias = dict[str, int]
"""No amount in it is 0."""

Buckets: TypeAlias = dict[int, Amounts]
"""Amounts by bucket of an hour: the number of its first minute, from 0 to 59. No bucket in it is empty."""

WALL: Final = "u"
"""Before a stage: microseconds."""
GPU: Final = "g"
"""Before a stage: GPU-microseconds."""
TTS: Final = "s"
"""Before the number of a histogram's bucket: times to start."""
TTR: Final = "r"
"""Before the number of a histogram's bucket: times to recover."""
LIVE: Final = "l"
"""Before a status: jobs that stood so when the bucket began."""
FAILURES: Final = "n"
INFRA: Final = "ni"
PREEMPTED: Final = "np"
BASE_WALL: Final = "bu"
"""Microseconds of all jobs: what the lost time of an owner is compared with."""
BASE_GPU: Final = "bg"
"""GPU-microseconds of all jobs."""


def add(into: Amounts, more: Mapping[str, int], times: int = 1) -> None:
    """Add amounts, or with -1 take them away. What becomes 0 is gone."""
    for name, amount in more.items():
        total = into.get(name, 0) + times * amount
        if total:
            into[name] = total
        else:
            into.pop(name, None)


def coarser(buckets: Buckets, minutes: int) -> Buckets:
    """Return buckets of so many minutes instead of fewer. Who stood how is known of the begin of each alone."""
    out: Buckets = {}
    for at, amounts in buckets.items():
        target = at // minutes * minutes
        kept = amounts if at == target else {n: a for n, a in amounts.items() if n[0] != LIVE}
        add(out.setdefault(target, {}), kept)
    return {at: amounts for at, amounts in out.items() if amounts}


def total(many: Iterable[Mapping[str, int]], wanted: Callable[[str], bool] | None = None) -> Amounts:
    """Return the sum of many, or of those of their names that are wanted."""
    out: Amounts = {}
    get = out.get
    for amounts in many:
        for name, amount in amounts.items():
            out[name] = get(name, 0) + amount
    return {name: amount for name, amount in out.items() if amount and (wanted is None or wanted(name))}


def pack(value: Any) -> bytes:
    """Return lists, dictionaries, numbers and text in a small space."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def unpack(data: bytes) -> Any:
    """Return what was packed. Keys of dictionaries are text."""
    return json.loads(zlib.decompress(data))
