"""Injections, asked for the factor of something at a time and place."""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import prod
from typing import Final

from ettwatch_sim.facts import Injected
from ettwatch_sim.life.faults import Times

_START_UP: Final = ("hardware_setup", "trainer_init", "pt2_compilation")


class Here:
    """What was injected into one place: a team, model and cluster."""

    def __init__(self, injected: Sequence[Injected], team: str, model: str, cluster: str) -> None:
        self._here = [
            each
            for each in injected
            if each.team in (None, team) and each.model in (None, model) and each.cluster in (None, cluster)
        ]

    def stage(self, stage: str, ts: int) -> float:
        """Return by how much a stage that begins at `ts` takes longer, on all hosts."""
        return _product(each for each in self._at("stage", ts) if each.host is None and _hits(each, stage))

    def stages(self, ts: int, base: float) -> Callable[[str], float]:
        """Return the same as a function of the stage, times a factor of all."""
        if not self._at("stage", ts):
            return lambda stage: base
        return lambda stage: base * self.stage(stage, ts)

    def on_hosts(self, hosts: Collection[str], ts: int) -> tuple[str | None, Callable[[str], float]]:
        """Return the host among some that something was injected into, and its factor as a function of the stage."""
        named = [each for each in self._at("stage", ts) if each.host in hosts]
        if not named:
            return None, lambda stage: 1.0
        return named[0].host, lambda stage: _product(each for each in named if _hits(each, stage))

    def saves(self, ts: int) -> float:
        """Return by how much a checkpoint that begins at `ts` takes longer."""
        return _product(self._at("saves", ts)) * self.stage("wasted_training.checkpoint_save", ts)

    def queue(self, ts: int) -> float:
        """Return by how much a wait for hardware that ends at `ts` is longer."""
        return _product(self._at("queue", ts))

    def cold(self, ts: int) -> float:
        """Return the share of attempts that find no compiled code."""
        return max((each.factor for each in self._at("cold_caches", ts)), default=0.0)

    def pause(self, kind: str, ts: int) -> float:
        """Return by how much a pause of the loop is longer."""
        if not self._here:
            return 1.0
        return self.saves(ts) if kind == "wasted_training.checkpoint_save" else self.stage(kind, ts)

    def failures(self, base: float) -> Times:
        """Return by how much failures are more frequent; `base` is the team's own factor."""
        rates = [each for each in self._here if each.what == "failures"]
        if not rates:
            return Times(lambda cause, ts: base, ())

        def factor(cause: str, ts: int) -> float:
            value = base
            for each in rates:
                if each.since <= ts and (each.until is None or ts < each.until) and each.cause in (None, cause):
                    value *= each.factor
            return value

        return Times(factor, sorted({t for each in rates for t in (each.since, each.until) if t is not None}))

    def _at(self, what: str, ts: int) -> list[Injected]:
        return [
            each
            for each in self._here
            if each.what == what and each.since <= ts and (each.until is None or ts < each.until)
        ]


def _hits(each: Injected, stage: str) -> bool:
    if each.stage is None:
        return stage != "pt2_compilation.recompile" and stage.startswith(_START_UP)
    return stage == each.stage or stage.startswith(f"{each.stage}.")


def _product(injected: Iterable[Injected]) -> float:
    return prod(each.factor for each in injected)
