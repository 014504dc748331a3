"""The start-up of an attempt: which stages, how long, one after the other or beside each other."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import exp
from random import Random
from typing import Final

from ettwatch_sim.life.charge import Span
from ettwatch_sim.life.dice import US
from ettwatch_sim.life.model import Model
from ettwatch_sim.life.remedies import AUTOTUNE_KEPT, AUTOTUNE_LEFT, COMMUNICATION_LEFT, WARM_IMAGE, Remedy

_STAGES: Final = (
    "hardware_setup.image_pull",
    "hardware_setup.binary_start",
    "hardware_setup",
    "trainer_init.device_init",
    "trainer_init.process_group_init",
    "trainer_init.preproc_creation",
    "trainer_init.train_module_creation",
    "trainer_init.init_plugins",
    "trainer_init.checkpoint_load",
    "trainer_init.get_first_batch_data",
    "trainer_init.pre_train",
    "trainer_init",
    "pt2_compilation.dynamo",
    "pt2_compilation.aot_autograd",
    "pt2_compilation.inductor",
    "pt2_compilation.autotune",
    "pt2_compilation.cache_load",
    "pt2_compilation",
)
_BARRIER: Final = "trainer_init.process_group_init"
"""All ranks leave it together, so that no host is late in it."""
_GLUE_S: Final = 1.5
"""Time between two phases that nobody tells of."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What decides how long a start-up takes, beside its model.

    Attributes:
        remedies: What is switched on.
        again: Whether it is a later attempt.
        kept: Whether it runs on the hosts of the attempt before.
        cached: Whether compiled code is found.
        factor: Factor of a stage on all hosts, by its name (injections, the team).
        slow: Factor of a stage on its slowest host, on top of that.
    """

    remedies: Collection[Remedy]
    again: bool
    kept: bool
    cached: bool
    factor: Callable[[str], float]
    slow: Callable[[str], float]


@dataclass(frozen=True, slots=True)
class Startup:
    """A start-up that nothing disturbs. Times in µs.

    Attributes:
        spans: Its phases, by start; containers before their parts.
        loop_start: When the first step begins.
        first_batch: When training really begins, after a compilation in the first step.
    """

    spans: tuple[Span, ...]
    loop_start: int
    first_batch: int


def start_up(model: Model, dice: Random, start: int, how: Conditions) -> Startup:
    """Lay out a start-up that begins at `start` (µs)."""
    return _Plan(model, dice, how).lay_out(start)


class _Plan:
    def __init__(self, model: Model, dice: Random, how: Conditions) -> None:
        self._model = model
        self._how = how
        common = exp(model.spread * dice.gauss())
        # Each stage has its draw, used or not: what is switched on moves no other.
        self._luck = {stage: common * exp(model.stage_spread * dice.gauss()) for stage in _STAGES}
        self._spans: list[Span] = []

    def lay_out(self, start: int) -> Startup:
        model, how = self._model, self._how
        overlap = "overlap" in how.remedies
        exchanges = model.exchanges_s * (COMMUNICATION_LEFT if "communication" in how.remedies else 1)
        image = model.image_pull_s * (WARM_IMAGE if how.kept else 1)
        at = self._stage("hardware_setup.image_pull", start, image, source="scheduler")
        at = self._stage("hardware_setup.binary_start", at, model.binary_start_s, source="launcher")
        boot = at + self._glue("hardware_setup")
        device = self._stage("trainer_init.device_init", boot, model.device_init_s)
        group = self._stage(_BARRIER, device, model.process_group_s + exchanges / 2)
        preproc = self._stage("trainer_init.preproc_creation", boot if overlap else device, model.preproc_s)
        module = self._stage(
            "trainer_init.train_module_creation",
            device if overlap else max(group, preproc),
            model.module_s + exchanges / 2,
        )
        if overlap:
            module = max(module, group)  # the last exchange needs the group
        plugins = self._stage("trainer_init.init_plugins", module, model.plugins_s)
        loaded = self._stage("trainer_init.checkpoint_load", device if overlap else plugins, model.checkpoint_load_s)
        batch = self._stage("trainer_init.get_first_batch_data", preproc if overlap else loaded, model.first_batch_s)
        ready = max(plugins, loaded, batch)
        if overlap:
            ready = max(ready, self._compile(module))
        elif not model.lazy:
            ready = self._compile(ready)
        ready = self._stage("trainer_init.pre_train", ready + self._glue("trainer_init"), model.pre_train_s)
        self._spans.append(Span("trainer_init", boot, ready))
        first_batch = self._compile(ready) if model.lazy and not overlap else ready
        spans = sorted(self._spans, key=lambda span: (span.start, span.parent is not None, -span.end))
        return Startup(tuple(spans), ready, first_batch)

    def _compile(self, start: int) -> int:
        model, how = self._model, self._how
        parts = {"dynamo": 0.4 * model.trace_s}
        if how.cached:
            parts["cache_load"] = model.cache_load_s
        else:
            left = 1.0
            if "autotune" in how.remedies:
                left = AUTOTUNE_KEPT if how.again else AUTOTUNE_LEFT
            parts |= {
                "aot_autograd": 0.6 * model.trace_s,
                "inductor": model.kernels_s,
                "autotune": left * model.autotune_s,
            }
        at = start
        for part, seconds in parts.items():
            at = self._stage(f"pt2_compilation.{part}", at, seconds, parent="pt2_compilation")
        at += self._glue("pt2_compilation")
        self._spans.append(Span("pt2_compilation", start, at))
        return at

    def _stage(self, phase: str, start: int, seconds: float, parent: str | None = None, source: str = "trainer") -> int:
        """Add a phase and return its end; one that takes no time is left out."""
        if seconds <= 0:
            return start
        if phase.startswith("trainer_init."):
            parent = "trainer_init"
        usual = seconds * self._luck[phase] * self._how.factor(phase) * US
        slow = 1.0 if phase == _BARRIER else self._how.slow(phase)
        took = max(1, int(usual * slow))
        self._spans.append(Span(phase, start, start + took, parent, max(0, took - int(usual) - 1), source))
        return start + took

    def _glue(self, phase: str) -> int:
        return max(1, int(_GLUE_S * self._luck[phase] * self._how.factor(phase) * US))
