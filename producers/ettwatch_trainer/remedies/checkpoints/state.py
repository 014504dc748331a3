"""What a trainer gives to be saved, taken apart for one rank: what is shared, what is its own, what names what."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ettwatch_trainer.remedies.checkpoints import flat
from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError
from ettwatch_trainer.remedies.checkpoints.named import NamedOptimizer, is_numbered, parameter_names
from ettwatch_trainer.remedies.checkpoints.rng import Generators

GENERATORS = "_generators"
LOCAL = "_local"
SKELETON = "_skeleton"


class Local:
    """Marks a part of the state that belongs to this rank only; it can only be loaded by as many ranks as saved it."""

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass(slots=True)
class Taken:
    """A state at one moment: `tensors` by name, still those of the trainer; `skeleton` has all the rest."""

    tensors: dict[str, torch.Tensor]
    skeleton: dict[str, Any]
    local: frozenset[str]
    parts: dict[str, Any] = field(default_factory=dict)  # what takes each part back: has load_state_dict, or is a value


def take(state: Mapping[str, Any], rank: int, *, rng: bool) -> Taken:
    """Take a state apart. Raises CheckpointError where something cannot be saved."""
    if clash := {GENERATORS, LOCAL} & state.keys():
        raise CheckpointError(f"the state has a part {min(clash)!r}, a name that is used here; rename it")
    names = parameter_names(state)
    taken = Taken({}, {}, frozenset({name for name, value in state.items() if isinstance(value, Local)}))
    for key, value in state.items():
        part = value.value if isinstance(value, Local) else value
        taken.parts[key] = NamedOptimizer(key, part, names) if is_numbered(part) and key not in taken.local else part
    if rng:
        taken.parts[GENERATORS] = Generators()
        taken.local |= {GENERATORS}
    taken.skeleton[LOCAL] = sorted(taken.local)
    for key, part in taken.parts.items():
        value = part.state_dict() if is_stateful(part) else part
        taken.skeleton[key] = flat.flatten(value, prefix(key, rank, key in taken.local), taken.tensors)
    return taken


def give_back(state: MutableMapping[str, Any], taken: Taken, key: str, value: Any) -> None:
    """Hand a loaded part to what it is a part of; a plain value takes the place of the old one."""
    part = taken.parts[key]
    if is_stateful(part):
        if isinstance(part, torch.nn.Module):
            # What versions the module's layers are of: it is no part of what was saved, and the same for this code.
            versions = getattr(part.state_dict(), "_metadata", None)
            value = OrderedDict(value)
            value._metadata = versions
        part.load_state_dict(value)
    else:
        state[key] = Local(value) if isinstance(state[key], Local) else value


def prefix(key: str, rank: int, local: bool) -> str:
    """What the names of a part's tensors begin with."""
    return f"rank{rank}//{key}" if local else key


def skeleton_name(rank: int) -> str:
    """The name under which a rank's skeleton is saved."""
    return f"rank{rank}//{SKELETON}"


def is_stateful(part: object) -> bool:
    """Whether a part is asked for its state, and not itself the state."""
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
