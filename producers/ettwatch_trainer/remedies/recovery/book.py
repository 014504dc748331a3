"""What earlier attempts of a job have seen: how long it ran, how often it failed, what saves cost. Needs no torch."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VERSION = 1
KEPT = 15  # saves whose times are remembered


@dataclass(frozen=True, slots=True)
class Seen:
    """`running`: an attempt has begun and not ended; if the next one finds that, the attempt before failed."""

    seconds: float = 0.0
    failures: int = 0
    running: bool = False
    blocking_s: tuple[float, ...] = ()
    durable_after_s: tuple[float, ...] = ()


def read(path: Path) -> Seen:
    """What is in the book; nothing if there is none or it cannot be read: it only makes a better guess."""
    try:
        found = json.loads(path.read_bytes())
        if found["version"] != VERSION:
            return Seen()
        seen = Seen(
            float(found["seconds"]),
            int(found["failures"]),
            bool(found["running"]),
            tuple(float(each) for each in found["blocking_s"])[-KEPT:],
            tuple(float(each) for each in found["durable_after_s"])[-KEPT:],
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Seen()
    amounts = [seen.seconds, float(seen.failures), *seen.blocking_s, *seen.durable_after_s]
    return seen if all(math.isfinite(amount) and amount >= 0 for amount in amounts) else Seen()


def write(path: Path, seen: Seen) -> None:
    """Keep the book, whole or as it was. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.write_text(json.dumps({"version": VERSION, **asdict(seen)}))
    unfinished.replace(path)
