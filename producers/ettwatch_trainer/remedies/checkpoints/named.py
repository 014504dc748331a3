"""An optimizer's state under the names of the parameters instead of their numbers.

Numbers say nothing to another rank: with tables sharded over ranks, state 0 is of another table on each. Under the name
it is the same wherever the table lives, so that another number of ranks can take it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.optim import Optimizer

from ettwatch_trainer.remedies.checkpoints.errors import CheckpointError


def parameter_names(state: Mapping[str, Any]) -> dict[int, str]:
    """Name of each parameter (by its id) of the modules in `state`: key of the module, a dot, name in it."""
    found: dict[int, str] = {}
    for key, value in state.items():
        if isinstance(value, torch.nn.Module):
            for name, parameter in value.named_parameters():
                found.setdefault(id(parameter), f"{key}.{name}")
    return found


def is_numbered(value: object) -> bool:
    """Whether it is an optimizer that numbers its parameters, as those of torch do."""
    return isinstance(value, Optimizer) and type(value).state_dict is Optimizer.state_dict


class NamedOptimizer:
    """Stands for an optimizer while it is saved or loaded."""

    def __init__(self, key: str, optimizer: Optimizer, names: Mapping[int, str]) -> None:
        self._optimizer = optimizer
        self._key = key
        self._names: list[str] = []
        self._parameters: dict[str, torch.Tensor] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = names.get(id(parameter))
                if name is None:
                    raise CheckpointError(
                        f"{key!r} steps a parameter of shape {tuple(parameter.shape)} that no module of the state has; "
                        "add the module, or wrap the optimizer in Local"
                    )
                self._names.append(name)
                self._parameters[name] = parameter
        if len(set(self._names)) != len(self._names):
            raise CheckpointError(f"{key!r} has a parameter twice")

    def wants(self, name: str) -> bool:
        """Whether this rank has the parameter."""
        return name in self._names

    def parameters(self) -> Mapping[str, torch.Tensor]:
        """Its parameters by name: before its first step an optimizer has no tensors of its own to tell their kind."""
        return self._parameters

    def state_dict(self) -> dict[str, Any]:
        """`state` and `options` (what a group says), both by name of the parameter."""
        numbered = self._optimizer.state_dict()
        state = {self._names[number]: dict(of) for number, of in numbered["state"].items()}
        options = {
            self._names[number]: {name: value for name, value in group.items() if name not in ("params", "param_names")}
            for group in numbered["param_groups"]
            for number in group["params"]
        }
        return {"state": state, "options": options}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Give the optimizer its state back. Raises CheckpointError if a parameter is not in it."""
        numbered = self._optimizer.state_dict()
        numbers = {name: number for number, name in enumerate(self._names)}
        groups = []
        for group in numbered["param_groups"]:
            options = [self._options(saved, self._names[number]) for number in group["params"]]
            if any(_plain(other) != _plain(options[0]) for other in options[1:]):
                raise CheckpointError(
                    f"{self._key!r}: parameters that are one group now had different options when they were saved; "
                    "make the groups as they were"
                )
            groups.append({**group, **(options[0] if options else {})})
        state = {numbers[name]: dict(of) for name, of in saved["state"].items() if name in numbers}
        self._optimizer.load_state_dict({"state": state, "param_groups": groups})

    def _options(self, saved: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        found = saved["options"].get(name)
        if found is None:
            raise CheckpointError(f"the checkpoint has nothing for {name!r} of {self._key!r}; the model has changed")
        options: Mapping[str, Any] = found
        return options


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in options.items()}
