"""What a user's factory returns: the model as it is to score, and what to export it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Inference:
    """`model` may have any weights: those of the checkpoint are loaded into it, by name and completely.

    inputs: an example that the export is made and checked with. dynamic_shapes: as torch.export takes them. adapt:
    turns what the checkpoint holds into the model's own names, where they differ.
    """

    model: torch.nn.Module
    inputs: tuple[Any, ...]
    dynamic_shapes: Any = None
    adapt: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
