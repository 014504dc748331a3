"""What the example in JAX calls, in plain Python numbers, for where JAX is not installed."""

import sys
import time
from types import ModuleType
from typing import Any


class Compiled:
    def __init__(self, function: Any) -> None:
        self._function = function

    def lower(self, *args: Any) -> "Compiled":
        return self

    def compile(self) -> "Compiled":
        time.sleep(0.05)
        return self

    def __call__(self, *args: Any) -> Any:
        time.sleep(0.02)
        return self._function(*args)


def jit(function: Any) -> Compiled:
    return Compiled(function)


def grad(function: Any) -> Any:
    return lambda weights, *args: weights * 0.0


def devices() -> list[str]:
    return ["cpu"]


def block_until_ready(value: Any) -> Any:
    return value


class _Weights(float):
    def __matmul__(self, other: Any) -> float:
        return 0.0


numpy = ModuleType("jax.numpy")
numpy.zeros = lambda n: _Weights(0.0)  # type: ignore[attr-defined]
numpy.mean = lambda value: value  # type: ignore[attr-defined]
sys.modules["jax.numpy"] = numpy
__path__: list[str] = []
