"""Which dimensions of which inputs are dynamic: a small versioned file, and how it is put to use."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ettwatch_trainer.remedies.writing import write_whole

VERSION = 1
# Modules of torch's own, such as Sequential, are compiled through a function of this name, which takes anything.
WRAPPED = "wrap_inline.<locals>.inner"


@dataclass(frozen=True, slots=True)
class Mark:
    """One dimension of one input that changes. `why`: the guard that failed, in torch's words.

    `source` is the input as torch names it, seen from inside the function: `dense`, `batch.ids`, `inputs['x'][0]`.
    """

    function: str
    source: str
    dim: int
    why: str = ""

    @property
    def place(self) -> tuple[str, str, int]:
        """What it marks, whatever the reason."""
        return (self.function, self.source, self.dim)


@dataclass(frozen=True, slots=True)
class Marks:
    """The dimensions that are to be marked, in order."""

    marks: tuple[Mark, ...] = ()

    @classmethod
    def of(cls, marks: Iterable[Mark]) -> Marks:
        """Without repetitions: of a dimension, the first reason stays."""
        first: dict[tuple[str, str, int], Mark] = {}
        for mark in marks:
            first.setdefault(mark.place, mark)
        return cls(tuple(first[place] for place in sorted(first)))

    def apply(self, model: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
        """Mark the inputs of a call `model(*args, **kwargs)` that is about to be made; return how many dimensions.

        To be called before each call that may compile; a mark costs about a microsecond. Marks that do not fit the
        function or its arguments are left out. Where the code needs one certain size after all, torch compiles for
        it as without a mark.
        """
        function = _function(model)
        names = {function.__qualname__, WRAPPED} if _is_wrapped(model) else {function.__qualname__}
        mine = [mark for mark in self.marks if mark.function in names]
        if not mine:
            return 0
        try:
            bound = inspect.signature(function).bind(*args, **kwargs).arguments
        except TypeError:  # the call fails by itself, with words of its own
            return 0
        marked = 0
        for mark in mine:
            value = _find(mark.source, {"args": args, "kwargs": kwargs} if mark.function == WRAPPED else bound)
            if isinstance(value, torch.Tensor) and mark.dim < value.ndim:
                torch._dynamo.maybe_mark_dynamic(value, mark.dim)
                marked += 1
        return marked

    def save(self, path: Path) -> None:
        """Write them, whole or not at all. Raises OSError."""
        text = json.dumps({"version": VERSION, "marks": [asdict(mark) for mark in self.marks]}, indent=1)
        write_whole(path, text.encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> Loaded:
        """Read them; a file that is missing or bad gives no marks, and says why. Never raises."""
        try:
            read = json.loads(path.read_bytes())
            if read["version"] != VERSION:
                return Loaded(cls(), f"{path} has version {read['version']!r}; this program reads {VERSION}")
            marks = cls.of(Mark(**mark) for mark in read["marks"])
            for mark in marks.marks:
                if type(mark.dim) is not int or mark.dim < 0 or not isinstance(mark.source, str):
                    raise ValueError(f"{mark} is no mark")
        except FileNotFoundError:
            return Loaded(cls(), f"there is no {path} yet")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Loaded(cls(), f"{path} holds no marks ({type(error).__name__}: {error}); it is ignored")
        return Loaded(marks)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read: the marks, and the reason why there are none (None where they were read)."""

    marks: Marks
    reason: str | None = None


def _function(model: Any) -> Any:
    """The plain function that is compiled: the forward of a module, what torch.compile was given."""
    model = getattr(model, "_orig_mod", model)
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        model = getattr(model.module, "_orig_mod", model.module)
    if isinstance(model, torch.nn.Module):
        return model.forward
    return inspect.unwrap(getattr(model, "_torchdynamo_orig_callable", model))


def _is_wrapped(model: Any) -> bool:
    model = getattr(model, "_orig_mod", model)
    return isinstance(model, torch.nn.Module) and type(model).forward.__module__.startswith("torch.")


def _find(source: str, given: Any) -> Any:
    """The value that a source names among the arguments; None if it is not there. Nothing is executed."""
    try:
        return _value(ast.parse(source, mode="eval").body, given)
    except (SyntaxError, LookupError, AttributeError, TypeError, ValueError):
        return None


def _value(node: ast.expr, given: Any) -> Any:
    if isinstance(node, ast.Name):
        return given[node.id]
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, given), node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return _value(node.value, given)[node.slice.value]
    raise ValueError(ast.dump(node))
