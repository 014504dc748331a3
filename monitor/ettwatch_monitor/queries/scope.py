"""Whose jobs are asked for."""

from dataclasses import dataclass
from typing import Final

__all__ = ["DIMENSIONS", "Scope"]

DIMENSIONS: Final = ("team", "model", "cluster")


@dataclass(frozen=True, slots=True)
class Scope:
    """Jobs of a team, model and cluster. None is all; the empty text is those that name none."""

    team: str | None = None
    model: str | None = None
    cluster: str | None = None

    def told(self) -> dict[str, str]:
        """Return what is fixed, by dimension."""
        return {name: value for name in DIMENSIONS if (value := getattr(self, name)) is not None}

    def where(self, table: str = "") -> str:
        """Return the condition on columns that are empty, or NULL, for none; its values are `params`."""
        dot = f"{table}." if table else ""
        return " AND ".join(f"ifNull({dot}{name}, '') = {{of_{name}:String}}" for name in self.told()) or "1"

    def params(self) -> dict[str, object]:
        """Return the values of the condition."""
        return {f"of_{name}": value for name, value in self.told().items()}
