"""Tensors that are trained, as a part of a checkpoint: by names that do not hang on the rank that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch


class LiveTensors:
    """Has `state_dict` and `load_state_dict`, over what `tensors()` returns: views that are written to on loading."""

    def __init__(self, tensors: Callable[[], dict[str, torch.Tensor]]) -> None:
        self._tensors = tensors

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The tensors themselves, not copies."""
        return self._tensors()

    @torch.no_grad()
    def load_state_dict(self, saved: Mapping[str, torch.Tensor]) -> None:
        """Copy what was saved into them. Raises KeyError where one is missing."""
        for name, tensor in self._tensors().items():
            if tensor.data_ptr() != saved[name].data_ptr():
                tensor.copy_(saved[name])
