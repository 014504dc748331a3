"""The whole bench: rounds of runs, written down after each run, within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from ettwatch_app.remedies.kept import Kept, Table
from ettwatch_app.remedies.measure import Figures, NotMeasured
from ettwatch_app.remedies.plan import Round, Variant, first_job
from ettwatch_app.remedies.running import RunFailed, cleared, run_once, run_through
from ettwatch_trainer.reference import ReferenceConfig

Say = Callable[[str], None]


@dataclass(slots=True)
class Bench:
    """Runs everything and keeps what came of it.

    Attributes:
        base: The workload.
        kept: The results so far; runs that are there already are not made again.
        folder: Where runs take place; each is removed when it is measured.
        budget_s: After this time no run is begun but those that must be, and none before it that would end after it.
        say: Is told each line of progress.
        run: Makes a run and measures it.
        before: Makes a run that is not measured.
    """

    base: ReferenceConfig
    kept: Kept
    folder: Path
    budget_s: float
    say: Say
    run: Callable[..., Figures] = run_once
    before: Callable[..., None] = run_through
    clock: Callable[[], float] = time.monotonic
    _taken: dict[str, list[float]] = field(default_factory=dict)
    _began: float = 0.0
    _done: int = 0

    def go(self, planned: Sequence[Round]) -> bool:
        """Make the runs, write the results after each; whether there were any and none failed."""
        self._began = self.clock()
        todo = [(each, variant) for each in planned for variant in each.variants if not self._had(each, variant)]
        total = len(todo)
        for number, (each, variant) in enumerate(todo):
            expected = self._expected(variant)
            if not each.must and self._passed() + expected > self.budget_s:
                self.kept.left_out.append(_job(variant, each))
                total -= 1
                self.say(f"{_job(variant, each)}: no time for it, left out")
            else:
                self._one(variant, each)
                later = [self._expected(other) for _, other in todo[number + 1 :]]
                left = min(sum(later), max(self.budget_s - self._passed(), 0.0))
                self.say(
                    f"  {self._done} of {total} runs, {self._passed() / 60:.0f} min, about {left / 60:.0f} min left"
                )
            self.kept.write()
            if number + 1 == len(todo) or todo[number + 1][0] is not each:
                self.kept.draw(self.say)
        return bool(self.kept.any) and not self.kept.failures

    def _one(self, variant: Variant, each: Round) -> None:
        start = self.clock()
        job, table = _job(variant, each), self.kept.table(each.slowness)
        memory = self.folder / f"memory-{variant.name}" if variant.earlier else None
        config = replace(
            each.slowness.put_on(variant.config(self.base)), out=self.folder / job, memory=str(memory or "")
        )
        try:
            if memory is not None and not memory.exists():
                for number in range(variant.earlier):
                    self.say(f"{variant.name}: a short job that ran before, {number + 1} of {variant.earlier}")
                    self.before(first_job(config), job=f"{job}-before-{number}")
            began = self.clock()
            figures = self.run(config, job=job)
        except (RunFailed, NotMeasured) as error:
            self.kept.failures.append(str(error))
            self.say(f"{job} failed: {error}")
            began = start
        else:
            table.runs.setdefault(variant.name, []).append(figures)
            self.say(
                f"{job}: TTS {figures.tts_s:.1f} s, TTR {figures.ttr_s:.1f} s, ETT {figures.ett_pct:.1f} % "
                f"of {figures.e2e_s:.0f} s"
            )
        cleared(config.out)
        self._done += 1
        # Without the earlier jobs, which come once.
        self._taken.setdefault(variant.name, []).append(self.clock() - began)

    def _had(self, each: Round, variant: Variant) -> bool:
        table: Table = self.kept.table(each.slowness)
        return len(table.runs.get(variant.name, ())) > each.number

    def _passed(self) -> float:
        return self.clock() - self._began

    def _expected(self, variant: Variant) -> float:
        """Seconds that another run of it will take."""
        same = self._taken.get(variant.name) or [taken for each in self._taken.values() for taken in each]
        return mean(same) if same else 0.0


def _job(variant: Variant, each: Round) -> str:
    return f"{variant.name}-{'slow' if each.slowness.values else 'bare'}-{each.number}"
