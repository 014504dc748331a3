"""Which runs are made, in which order: rounds in which every variant is run once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from ettwatch_trainer.reference import REMEDIES, ReferenceConfig, Slowness

BASELINE, TUNED, ALL = "baseline", "tuned", "all"


@dataclass(frozen=True, slots=True)
class Variant:
    """One setting of the switches.

    Attributes:
        against: The variant that it is compared with.
        tune: Whether kernels are searched.
        earlier: Short jobs of the same model that ran before and are not measured: what they wrote down is there. All
            but `baseline` and `tuned`, which keep nothing, begin as the tenth job of a model would, not as the first.
    """

    name: str
    remedies: tuple[str, ...]
    against: str = BASELINE
    tune: bool = False
    earlier: int = 0

    def config(self, base: ReferenceConfig) -> ReferenceConfig:
        """The settings of its runs."""
        return dataclasses.replace(base.only(*self.remedies), tune=self.tune)


def variants() -> list[Variant]:
    """Nothing on, each remedy alone, everything on.

    Kernels are tuned only where tuning is what is compared: a whole search takes longer than everything else.
    """
    remember = ("dynamic_shapes", "compile_cache")
    alone = [
        Variant(name, (name,), TUNED, tune=True, earlier=1)
        if name == "autotune"
        else Variant(name, (name,), earlier=int(name in remember))
        for name in REMEDIES
    ]
    # The first learns which sizes vary, the second compiles for all of them.
    everything = Variant(ALL, REMEDIES, earlier=2)
    return [Variant(BASELINE, ()), *alone, Variant(TUNED, (), TUNED, tune=True), everything]


@dataclass(frozen=True, slots=True)
class Round:
    """Every variant once, with one kind of slowness."""

    slowness: Slowness
    number: int
    variants: tuple[Variant, ...]
    must: bool
    """Whether it is run even if the time is up."""


def rounds(slow: Slowness, bare: Slowness, wanted: Sequence[Variant], repeats: int) -> list[Round]:
    """The rounds in order: those with slowness first, `repeats` times, then those without.

    Interleaved, so that what drifts on the machine meets all variants alike; every second round runs backwards.
    """
    made: list[Round] = []
    for slowness in (slow, bare):
        for number in range(repeats):
            order = tuple(wanted) if number % 2 == 0 else tuple(reversed(wanted))
            made.append(Round(slowness, number, order, must=slowness is slow or number == 0))
    return made


def first_job(config: ReferenceConfig) -> ReferenceConfig:
    """A job of the same model that ran before: long enough to meet every size of a batch."""
    return dataclasses.replace(config, steps=4 * config.batch_sizes + 1, kill_at_step=0, publish=False)


def workload(quick: bool) -> ReferenceConfig:
    """What is trained. In each run: a cold start, steps, a kill, a recovery, more steps, publishing."""
    base = ReferenceConfig(
        tables=200,
        rows=4_000,
        dim=16,
        batch=512,
        batch_sizes=3,
        failures_per_day=1_440.0,
        least_interval_s=5.0,
        most_interval_s=20.0,
        fail_rank=1,
    )
    if quick:
        return dataclasses.replace(base, steps=120, kill_at_step=70, checkpoint_every=30)
    return dataclasses.replace(base, steps=240, kill_at_step=130, checkpoint_every=50)
