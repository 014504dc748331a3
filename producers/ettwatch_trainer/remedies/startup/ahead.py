"""Compiles a model on a batch that is made up, while the real one is on its way."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _pytree as pytree


def compile_ahead(
    model: torch.nn.Module,
    batch: Sequence[Any] | Mapping[str, Any],
    *,
    loss: Callable[[Any], torch.Tensor] | None = None,
    backward: bool = True,
) -> float:
    """Run a compiled model forward and backward once, on `batch` of the right shapes; return the seconds it took.

    Weights, gradients, buffers and random numbers are after it what they were before, bit by bit; no hook of a
    gradient runs, so no optimizer steps and nothing is sent. `batch`: the arguments of the model, by place or by
    name; what it holds matters little, its shapes, types and devices must be those to come. `loss(output)`: a
    scalar; the sum of the output's tensors if None. `backward=False`: for a model that only reads.

    The model is what is compiled (`model.compile()`, or the result of `torch.compile`), not a wrapper that talks to
    other ranks. Nothing else may draw from torch's default generators meanwhile.
    """
    if isinstance(model, DistributedDataParallel):
        raise TypeError("compile_ahead takes the module inside of DistributedDataParallel (its .module), compiled")
    args, kwargs = ((), dict(batch)) if isinstance(batch, Mapping) else (tuple(batch), {})
    began = perf_counter()
    with _untouched(model, (args, kwargs)):
        if backward:
            with torch.enable_grad():
                output = model(*args, **kwargs)
                total = loss(output) if loss is not None else _total(output)
                aims = [leaf for leaf in [*model.parameters(), *_tensors((args, kwargs))] if leaf.requires_grad]
                # Not `backward()`: that would add to the gradients and call their hooks.
                torch.autograd.grad(total, aims, allow_unused=True)
        else:
            model(*args, **kwargs)
    return perf_counter() - began


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _total(output: Any) -> torch.Tensor:
    totals = [tensor.sum() for tensor in _tensors(output) if tensor.requires_grad]
    if not totals:
        raise ValueError("nothing in the model's output has a gradient; give loss=, or backward=False")
    return torch.stack([total.float() for total in totals]).sum()


@contextmanager
def _untouched(model: torch.nn.Module, values: Any) -> Iterator[None]:
    """Puts back what a forward pass may change: buffers, and the random numbers of torch, Python and numpy."""
    buffers = {name: (buffer, buffer.detach().clone()) for name, buffer in model.named_buffers()}
    versions = [(name, weight, weight._version) for name, weight in model.named_parameters()]
    devices = {tensor.device for tensor in [*model.parameters(), *model.buffers(), *_tensors(values)]}
    numpy = sys.modules.get("numpy")
    drawn, drawn_numpy = random.getstate(), numpy.random.get_state() if numpy is not None else None
    try:
        with torch.random.fork_rng(devices=[device for device in devices if device.type == "cuda"]):
            yield
    finally:
        random.setstate(drawn)
        if numpy is not None:
            numpy.random.set_state(drawn_numpy)
        with torch.no_grad():
            for name, (buffer, before) in buffers.items():
                owner, _, short = name.rpartition(".")
                model.get_submodule(owner)._buffers[short] = buffer
                buffer.copy_(before)
    if changed := [name for name, weight, version in versions if weight._version != version]:
        raise RuntimeError(f"the forward pass changes {', '.join(changed)} in place: it cannot be compiled ahead")
