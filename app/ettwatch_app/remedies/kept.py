"""What the runs of a bench came to, on disk: written whole after each run, and read again to go on."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ettwatch_app.remedies.measure import Figures
from ettwatch_app.remedies.picture import NoPictures, draw
from ettwatch_app.remedies.plan import Variant
from ettwatch_app.remedies.results import aims, rows
from ettwatch_app.remedies.writing import markdown, table_json
from ettwatch_trainer.reference import ReferenceConfig, Slowness

FILE = "remedies.json"
WITH, WITHOUT = "with injected slowness", "without injected slowness"


class NotKept(ValueError):
    """Results of before cannot be gone on with. The text says which and why."""


@dataclass(slots=True)
class Table:
    """The runs with one kind of slowness."""

    title: str
    slowness: Slowness
    runs: dict[str, list[Figures]] = field(default_factory=dict)


@dataclass(slots=True)
class Kept:
    """The results so far.

    Attributes:
        out: Folder of the results.
        base: The workload of all runs.
        wanted: The variants, in the order of the table.
        repeats: How many runs of each were wanted; each row says how many there are.
        left_out: Runs that there was no time for.
    """

    out: Path
    base: ReferenceConfig
    wanted: Sequence[Variant]
    repeats: int
    tables: dict[str, Table] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether there is a run."""
        return any(table.runs for table in self.tables.values())

    def table(self, slowness: Slowness) -> Table:
        """That of one kind of slowness."""
        title = WITH if slowness.values else WITHOUT
        return self.tables.setdefault(title, Table(title, slowness))

    def read(self, slowness: Sequence[Slowness]) -> int:
        """Take over the runs that an earlier bench wrote; how many. Raises NotKept if it was another workload."""
        path = self.out / FILE
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            raise NotKept(f"{path} cannot be read: {error}") from None
        try:
            if found["workload"]["arguments"] != self.base.arguments():
                raise NotKept(f"{path} is of another workload: {' '.join(found['workload']['arguments'])}")
            for each in slowness:
                table = self.table(each)
                told = found["tables"].get(table.title)
                if told is None:
                    continue
                if told["slowness"] != table_json(each, {}, ())["slowness"]:
                    raise NotKept(f"{path} is of another slowness")
                table.runs = {name: [_figures(run) for run in runs] for name, runs in told["runs"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise NotKept(f"{path} is not what this version of the bench writes: {error!r}") from None
        return sum(len(runs) for table in self.tables.values() for runs in table.runs.values())

    def write(self) -> None:
        """Write JSON and Markdown of what there is so far. Raises OSError."""
        self.out.mkdir(parents=True, exist_ok=True)
        found = {
            "name": "remedies",
            "version": _version("ettwatch"),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "workload": {"arguments": self.base.arguments()},
            "repeats": self.repeats,
            "left_out": self.left_out,
            "failures": self.failures,
            "tables": {table.title: table_json(table.slowness, table.runs, self.wanted) for table in self._there()},
        }
        _whole(self.out / FILE, json.dumps(found, indent=1, default=str) + "\n")
        _whole(self.out / "remedies.md", self.text())

    def draw(self, say: Callable[[str], None]) -> None:
        """A picture of each table, or a word to `say` where there is no matplotlib. Raises OSError."""
        for table in self._there():
            name = "remedies.png" if table.title == WITH else "remedies-bare.png"
            try:
                draw(self.out / name, rows(table.runs, self.wanted), table.runs)
            except NoPictures as error:
                say(str(error))
                break

    def _there(self) -> list[Table]:
        return [table for table in self.tables.values() if table.runs]

    def text(self) -> str:
        """All tables as Markdown, and what is missing in them."""
        parts = [markdown(table.title, rows(table.runs, self.wanted), aims(table.runs)) for table in self._there()]
        if self.left_out:
            parts.append(f"There was no time for {len(self.left_out)} runs: {', '.join(self.left_out)}.\n")
        if self.failures:
            parts.append(f"{len(self.failures)} runs failed.\n")
        return "\n".join(parts)


def machine() -> dict[str, Any]:
    """What the figures hang on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": _version("torch"),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _figures(told: dict[str, Any]) -> Figures:
    if set(told) != {item.name for item in fields(Figures)}:
        raise KeyError("figures of a run")
    return Figures(**told)


def _whole(path: Path, text: str) -> None:
    """A bench that is stopped while it writes must not take the results with it."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)
