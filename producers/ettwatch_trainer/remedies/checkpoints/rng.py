"""The random generators of one rank: of torch (CPU and the current GPU), of Python, and of numpy where it is loaded."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


class Generators:
    """All of them as one state."""

    def state_dict(self) -> dict[str, Any]:
        """Where they stand."""
        state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state()
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            kind, words, *rest = numpy.random.get_state()
            state["numpy"] = (kind, torch.from_numpy(words.astype("int64")), *rest)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put them back to where they stood."""
        torch.set_rng_state(state["torch"])
        random.setstate(state["python"])
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state(state["cuda"])
        if "numpy" in state:
            import numpy

            kind, words, *rest = state["numpy"]
            numpy.random.set_state((kind, words.numpy().astype("uint32"), *rest))


def reseed(step: int, rank: int) -> None:
    """Seeds for a rank that none of the saved states fits: they depend on the step and on the rank only."""
    seed = (step * 1_000_003 + rank) % (1 << 32)
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
