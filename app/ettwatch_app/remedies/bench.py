"""The whole bench: rounds of runs, written down after each, within a time."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from ettwatch_app.remedies.measure import Figures, NotMeasured
from ettwatch_app.remedies.picture import NoPictures, draw
from ettwatch_app.remedies.plan import Round, Variant, first_job
from ettwatch_app.remedies.results import aims, rows
from ettwatch_app.remedies.running import RunFailed, cleared, run_once, run_through
from ettwatch_app.remedies.writing import markdown, table_json
from ettwatch_trainer.reference import ReferenceConfig, Slowness

Say = Callable[[str], None]


@dataclass(slots=True)
class Table:
    """The runs with one kind of slowness."""

    title: str
    slowness: Slowness
    runs: dict[str, list[Figures]] = field(default_factory=dict)


@dataclass(slots=True)
class Bench:
    """Runs everything and keeps what came of it.

    Attributes:
        base: The workload.
        folder: Where runs take place; each is removed when it is measured.
        budget_s: After this time no round is begun but those that must be.
        say: Is told each line of progress.
        run: Makes a run and measures it.
        before: Makes a run that is not measured.
    """

    base: ReferenceConfig
    wanted: Sequence[Variant]
    folder: Path
    out: Path
    budget_s: float
    say: Say
    run: Callable[..., Figures] = run_once
    before: Callable[..., None] = run_through
    clock: Callable[[], float] = time.monotonic
    tables: dict[str, Table] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    _taken: list[float] = field(default_factory=list)
    _done: int = 0

    def go(self, planned: Sequence[Round]) -> bool:
        """Make the runs, write the results after each round; whether there were any and none failed."""
        began = self.clock()
        total = sum(len(each.variants) for each in planned)
        for each in planned:
            title = "with injected slowness" if each.slowness.values else "without injected slowness"
            table = self.tables.setdefault(title, Table(title, each.slowness))
            passed = self.clock() - began
            if not each.must and passed + self._expected(each) > self.budget_s:
                self.say(f"no time for another round {title}: left out")
                total -= len(each.variants)
                continue
            for variant in each.variants:
                self._one(variant, each, table, total, began)
            self.write()
        return bool(self._taken) and not self.failures

    def write(self) -> None:
        """Write JSON, Markdown and a picture of each table of what there is so far."""
        self.out.mkdir(parents=True, exist_ok=True)
        found = {
            "machine": {"cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
            "workload": {"arguments": self.base.arguments()},
            "failures": self.failures,
            "tables": {t.title: table_json(t.slowness, t.runs, self.wanted) for t in self.tables.values()},
        }
        (self.out / "remedies.json").write_text(json.dumps(found, indent=1, default=str) + "\n")
        (self.out / "remedies.md").write_text(self.text())
        for number, table in enumerate(self.tables.values()):
            try:
                draw(self.out / f"remedies{'-bare' if number else ''}.png", rows(table.runs, self.wanted), table.runs)
            except NoPictures as error:
                self.say(str(error))

    def text(self) -> str:
        """All tables as Markdown."""
        return "\n".join(markdown(t.title, rows(t.runs, self.wanted), aims(t.runs)) for t in self.tables.values())

    def _one(self, variant: Variant, each: Round, table: Table, total: int, began: float) -> None:
        start = self.clock()
        kind = "slow" if each.slowness.values else "bare"
        job = f"{variant.name}-{kind}-{each.number}"
        memory = self.folder / f"memory-{variant.name}" if variant.earlier else None
        config = replace(
            each.slowness.put_on(variant.config(self.base)), out=self.folder / job, memory=str(memory or "")
        )
        try:
            if memory is not None and not memory.exists():
                for number in range(variant.earlier):
                    self.say(f"{variant.name}: a short job that ran before, {number + 1} of {variant.earlier}")
                    self.before(first_job(config), job=f"{job}-before-{number}")
            figures = self.run(config, job=job)
        except (RunFailed, NotMeasured) as error:
            self.failures.append(str(error))
            self.say(f"{job} failed: {error}")
        else:
            table.runs.setdefault(variant.name, []).append(figures)
            self.say(
                f"{job}: TTS {figures.tts_s:.1f} s, TTR {figures.ttr_s:.1f} s, ETT {figures.ett_pct:.1f} % "
                f"of {figures.e2e_s:.0f} s"
            )
            cleared(config.out)
        self._done += 1
        self._taken.append(self.clock() - start)
        left = (total - self._done) * mean(self._taken)
        self.say(
            f"  {self._done} of {total} runs, {(self.clock() - began) / 60:.0f} min, about {left / 60:.0f} min left"
        )

    def _expected(self, each: Round) -> float:
        return len(each.variants) * mean(self._taken) if self._taken else 0.0
