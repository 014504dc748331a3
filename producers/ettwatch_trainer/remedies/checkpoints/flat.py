"""A nested state as flat named tensors and a skeleton of everything else, and back.

The tensors are what torch.distributed.checkpoint writes. The skeleton is the same nesting with a mark in the place of
each tensor; it is small, and each rank saves its own, as bytes in a tensor, so that no value of a rank gets lost.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError

MARK = "\0tensor"
RAW = "\0bytes"
PLAIN = (str, int, float, bool, complex, type(None), torch.dtype, torch.device, torch.Size)


def flatten(value: Any, key: str, tensors: dict[str, torch.Tensor]) -> Any:
    """The skeleton of `value`; its tensors go to `tensors` under names that begin with `key`.

    Raises CheckpointError where a value is none that can be saved.
    """
    if isinstance(value, torch.Tensor):
        if key in tensors:
            raise CheckpointError(f"two tensors of the state would be named {key!r}; rename one")
        tensors[key] = value.detach() if type(value) in (torch.Tensor, torch.nn.Parameter) else value
        return (MARK, key)
    if isinstance(value, Mapping):
        items = {name: flatten(item, f"{key}/{_escape(name, key)}", tensors) for name, item in value.items()}
        return OrderedDict(items) if isinstance(value, OrderedDict) else items
    if isinstance(value, list | tuple):
        parts = [flatten(item, f"{key}/{number}", tensors) for number, item in enumerate(value)]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, bytes):
        return (RAW, value.decode("latin-1"))  # the loader that runs no code does not know bytes
    if type(value) not in PLAIN:
        raise CheckpointError(
            f"the state has a {type(value).__module__}.{type(value).__qualname__} at {key!r}; "
            "give tensors, plain Python values, and dicts, lists and tuples of them"
        )
    return value


def fill(skeleton: Any, take: Callable[[str], torch.Tensor]) -> Any:
    """The nested value again, with `take(name)` in the place of each tensor."""
    if is_mark(skeleton):
        return take(skeleton[1])
    if is_mark(skeleton, RAW):
        return skeleton[1].encode("latin-1")
    if isinstance(skeleton, Mapping):
        items = {name: fill(item, take) for name, item in skeleton.items()}
        return OrderedDict(items) if isinstance(skeleton, OrderedDict) else items
    if isinstance(skeleton, list | tuple):
        return type(skeleton)(fill(item, take) for item in skeleton)
    return skeleton


def names(skeleton: Any) -> Iterator[str]:
    """The names of all tensors of a skeleton."""
    if is_mark(skeleton):
        yield skeleton[1]
    elif isinstance(skeleton, Mapping):
        for item in skeleton.values():
            yield from names(item)
    elif isinstance(skeleton, list | tuple):
        for item in skeleton:
            yield from names(item)


def is_mark(value: Any, mark: str = MARK) -> bool:
    """Whether a tensor stands here (or bytes)."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] == mark


def merge(one: Any, other: Any, key: str) -> Any:
    """What two ranks have saved, as one. Raises CheckpointError where they differ: no other number of ranks fits."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        both = OrderedDict(one) if isinstance(one, OrderedDict) else dict(one)
        for name, item in other.items():
            both[name] = merge(both[name], item, f"{key}/{name}") if name in both else item
        return both
    if one != other and repr(one) != repr(other):  # NaN is not equal to itself
        raise CheckpointError(
            f"{key!r} differs between the ranks that saved it; only as many ranks as then can go on from it"
        )
    return one


def pack(skeleton: Any) -> torch.Tensor:
    """A skeleton as a tensor of bytes."""
    body = io.BytesIO()
    torch.save(skeleton, body)
    return torch.frombuffer(bytearray(body.getvalue()), dtype=torch.uint8)


def unpack(packed: torch.Tensor) -> Any:
    """The skeleton again. No code is run for it, whatever the bytes are."""
    return torch.load(io.BytesIO(packed.numpy().tobytes()), weights_only=True)


def _escape(name: Any, key: str) -> str:
    if type(name) not in (str, int, bool, float):
        raise CheckpointError(f"the state has the key {name!r} at {key!r}; keys are texts or numbers")
    return str(name).replace("%", "%25").replace("/", "%2F")
