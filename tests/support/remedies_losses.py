"""The losses that ranks of the reference trainer wrote down."""

import json
from pathlib import Path


def losses(out: Path) -> dict[tuple[int, int], set[float]]:
    """By rank and step, the losses of every attempt that did the step."""
    found: dict[tuple[int, int], set[float]] = {}
    for path in (out / "losses").iterdir():
        rank = int(path.stem.rpartition("-")[2])
        for line in path.read_text().splitlines():
            told = json.loads(line)
            found.setdefault((rank, told["step"]), set()).add(told["loss"])
    return found
