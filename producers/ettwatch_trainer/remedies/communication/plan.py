"""Which rank holds which embedding table: made once, the same wherever it is made, readable by people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

VERSION = 1


class PlanError(ValueError):
    """A plan is missing, malformed, or not the one that this job needs. The text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Table:
    """An embedding table: its name, how many rows it has, how wide a row is."""

    name: str
    rows: int
    dim: int

    def __post_init__(self) -> None:
        """Refuse what cannot be a table."""
        if not isinstance(self.name, str) or not self.name:
            raise PlanError(f"a table needs a name, not {self.name!r}")
        for what, value in (("rows", self.rows), ("dim", self.dim)):
            if type(value) is not int or value < 1:
                raise PlanError(f"table {self.name}: {what} is {value!r}; give a whole number of at least 1")

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.rows * self.dim


@dataclass(frozen=True)
class Plan:
    """Every table and, in the same order, the rank that holds it whole."""

    world: int
    tables: tuple[Table, ...]
    ranks: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse a plan that names a table twice, or a rank that is not there."""
        if type(self.world) is not int or self.world < 1:
            raise PlanError(f"a plan is for a number of ranks of at least 1, not {self.world!r}")
        if len(self.tables) != len(self.ranks):
            raise PlanError(f"the plan has {len(self.tables)} tables and {len(self.ranks)} ranks for them")
        names = [table.name for table in self.tables]
        if twice := sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []:
            raise PlanError(f"tables are named twice: {', '.join(twice)}")
        for table, rank in zip(self.tables, self.ranks, strict=True):
            if type(rank) is not int or not 0 <= rank < self.world:
                raise PlanError(f"table {table.name} is on rank {rank!r}; there are ranks 0 to {self.world - 1}")

    def tables_of(self, rank: int) -> tuple[Table, ...]:
        """The tables that one rank holds, in the order of the plan."""
        return tuple(table for table, at in zip(self.tables, self.ranks, strict=True) if at == rank)

    def rank_of(self, name: str) -> int:
        """The rank that holds a table. Raises PlanError if there is no such table."""
        if name not in self._places:
            raise PlanError(f"the plan has no table {name!r}")
        return self._places[name]

    def to_json(self) -> str:
        """The plan as text; `from_json` makes an equal plan of it."""
        tables = [
            [table.name, table.rows, table.dim, rank] for table, rank in zip(self.tables, self.ranks, strict=True)
        ]
        return json.dumps({"version": VERSION, "world": self.world, "tables": tables}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read what `to_json` wrote. Raises PlanError."""
        try:
            read = json.loads(text)
            version, world, rows = read["version"], read["world"], [(*row,) for row in read["tables"]]
            if version != VERSION:
                raise PlanError(f"the plan has version {version!r}; this program reads version {VERSION}")
            return cls(world, tuple(Table(*row[:3]) for row in rows), tuple(rank for *_, rank in rows))
        except PlanError:
            raise
        except (ValueError, TypeError, KeyError) as error:
            raise PlanError(
                f"this is no plan ({type(error).__name__}: {error}); make it anew with make_plan"
            ) from error

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that tell two plans apart."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {table.name: rank for table, rank in zip(self.tables, self.ranks, strict=True)}


def make_plan(tables: Iterable[Table], world: int) -> Plan:
    """Spread the tables over the ranks so that each holds about as many numbers.

    The largest table first, each to the rank that holds least: no rank holds more than 4/3 of what the best plan
    would give it (R. L. Graham, Bounds on multiprocessing timing anomalies, 1969). The order in which the tables
    are given does not matter for where they go, and neither does chance.
    """
    given = tuple(tables)
    held = [0] * max(world, 0)
    places: dict[str, int] = {}
    for table in sorted(given, key=lambda table: (-table.size, table.name)):
        if not held:
            break
        rank = held.index(min(held))
        held[rank] += table.size
        places[table.name] = rank
    return Plan(world, given, tuple(places.get(table.name, 0) for table in given))
