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
        Variant(name, (name,), TUNED, tune=True, earlier=2)
        if name == "autotune"
        else Variant(name, (name,), earlier=int(name in remember))
        for name in REMEDIES
    ]
    # The first learns which sizes vary, the second compiles for all of them.
    everything = Variant(ALL, REMEDIES, earlier=2)
    return [Variant(BASELINE, ()), *alone, Variant(TUNED, (), TUNED, tune=True), everything]


@dataclass(frozen=True, slots=True)
class Round:
    """Some variants once, with one kind of slowness."""

    slowness: Slowness
    number: int
    variants: tuple[Variant, ...]
    must: bool
    """Whether its runs are made even if the time is up."""


def rounds(
    slow: Slowness, bare: Slowness, wanted: Sequence[Variant], repeats: int, *, quick: bool = False
) -> list[Round]:
    """The rounds in order: `repeats` of all variants with slowness, each followed by one without.

    Interleaved, so that what drifts on the machine meets all variants alike; every second round runs backwards, but for
    the two ends, nothing on and everything on: with them all is compared, and where time runs out they come first.
    Without slowness only they are run. The first round of each kind must be; of a quick bench only that with slowness.
    """
    first = [variant for name in (BASELINE, ALL) for variant in wanted if variant.name == name]
    others = [variant for variant in wanted if variant not in first]
    made: list[Round] = []
    for number in range(repeats):
        for slowness, more in ((slow, others), (bare, [])):
            order = (*first, *(more if number % 2 == 0 else reversed(more)))
            must = number == 0 and (slowness is slow or not quick)
            made.append(Round(slowness, number, order, must))
    return [each for each in made if each.variants]


def first_job(config: ReferenceConfig) -> ReferenceConfig:
    """A job of the same model that ran before: long enough to meet every size of a batch."""
    return dataclasses.replace(config, steps=4 * config.batch_sizes + 1, kill_at_step=0, publish=False)


def workload(quick: bool) -> ReferenceConfig:
    """What is trained. In each run: a cold start, steps, a kill, a recovery, more steps, publishing.

    The kill comes in the middle between two saves at fixed steps: what is done again is what a failure costs on
    average.
    """
    base = ReferenceConfig(
        engine="plain",
        tables=200,
        rows=4_000,
        dim=16,
        batch=512,
        batch_sizes=2,
        failures_per_day=1_440.0,
        least_interval_s=5.0,
        most_interval_s=20.0,
        fail_rank=1,
    )
    if quick:
        return dataclasses.replace(base, steps=100, kill_at_step=60, checkpoint_every=40)
    return dataclasses.replace(base, steps=200, kill_at_step=100, checkpoint_every=40)
