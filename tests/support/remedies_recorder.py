"""Stands in for a recorder: keeps the phases that were told, their attributes, and the thread that told them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from ettwatch import Recorder


@dataclass
class Phase:
    name: str
    attrs: dict[str, Any]
    thread: str
    outcome: str = "open"

    def set(self, **attrs: Any) -> None:
        self.attrs |= attrs


@dataclass
class Told:
    phases: list[Phase] = field(default_factory=list)

    def phase(self, name: str, *, attrs: Mapping[str, Any] | None = None) -> AbstractContextManager[Phase]:
        return self._span(Phase(name, dict(attrs or {}), threading.current_thread().name))

    @contextmanager
    def _span(self, phase: Phase) -> Iterator[Phase]:
        self.phases.append(phase)
        try:
            yield phase
        except BaseException:
            phase.outcome = "error"
            raise
        phase.outcome = "ok"

    @property
    def recorder(self) -> Recorder:
        """It, as the type that a remedy takes."""
        return cast(Recorder, self)
