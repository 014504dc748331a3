"""Sees recompiles and why they happened."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any

from ettwatch import Recorder
from ettwatch_trainer.remedies import telling
from ettwatch_trainer.remedies.shapes import sizes
from ettwatch_trainer.remedies.shapes.marks import Mark, Marks

log = logging.getLogger(__name__)

_SIZE = re.compile(
    r"tensor '(?P<source>.+)' size mismatch at index (?P<dim>\d+)\. expected (?P<was>\d+), actual (?P<is>\d+)"
)


@dataclass(frozen=True, slots=True)
class Recompile:
    """One recompile: of which function, and the guard that failed, in torch's words.

    `source`, `dim`, `expected` and `actual` where a tensor had another size; `also`: guards of older compilations
    of the same function that did not hold either.
    """

    function: str
    place: str  # file:line
    guard: str
    source: str | None = None
    dim: int | None = None
    expected: int | None = None
    actual: int | None = None
    also: tuple[str, ...] = ()


class ShapeWatch:
    """While entered, keeps every recompile of this process with its reason.

    With a recorder each is a phase `pt2_compilation.recompile` that carries the guard. What it listens to is not
    documented by PyTorch; where that is missing, `available` is false and nothing is kept.
    """

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.available = False
        self._recorder = recorder
        self._found: list[tuple[CodeType, Recompile]] = []
        # What torch had noted of each function: its list, which a reset replaces, and how much of it was read.
        self._seen: dict[CodeType, tuple[list[str], int]] = {}
        self._sizes: sizes.Sizes = {}
        self._changed: list[Mark] = []
        self._now: list[tuple[CodeType, Recompile]] = []
        self._lock = threading.Lock()
        self._open: AbstractContextManager[Any] | None = None

    def __enter__(self) -> ShapeWatch:
        """Begin to watch."""
        try:
            from torch._dynamo.callback import callback_handler
            from torch._dynamo.utils import guard_failures
        except ImportError:
            log.warning("this torch does not tell why it compiles again: no shapes are learned")
            return self
        self._seen = {code: (reasons, len(reasons)) for code, reasons in guard_failures.items()}
        self._sizes = sizes.now()
        callback_handler.register_start_callback(self._started)
        callback_handler.register_end_callback(self._ended)
        self.available = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        if not self.available:
            return
        from torch._dynamo.callback import callback_handler

        self._harvest()
        for callbacks, mine in (
            (callback_handler.start_callbacks, self._started),
            (callback_handler.end_callbacks, self._ended),
        ):
            if mine in callbacks:  # torch.compiler.reset() drops them
                callbacks.remove(mine)
        self.available = False

    @property
    def recompiles(self) -> tuple[Recompile, ...]:
        """What has been compiled again since the watch began."""
        if self.available:
            self._harvest()
        return tuple(recompile for _, recompile in self._found)

    def marks(self, before: Marks | None = None) -> Marks:
        """What should be marked next time: `before`, and every dimension whose size made for a recompile.

        An input that is not an argument (a weight, a global) cannot be marked and is only reported.
        """
        known = before.marks if before is not None else ()
        found = [mark for recompile in self.recompiles for mark in _marks(recompile)]
        return Marks.of([*known, *found, *self._changed])

    def _started(self, what: Any) -> None:
        # An exception here would hit the training step.
        try:
            number = str(getattr(what, "compile_id", "")).rpartition("/")[2]
            trigger = getattr(getattr(what, "callback_trigger", None), "name", "")
            if number in ("", "0") or trigger == "LAZY_BACKWARD":
                return
            self._now = self._harvest()
            guard = self._now[-1][1].guard if self._now else "unknown"
            self._open = telling.phase(self._recorder, "pt2_compilation.recompile", {"guard": guard})
            self._open.__enter__()
        except Exception:
            log.exception("a recompile was not kept")

    def _ended(self, what: Any) -> None:
        span, self._open = self._open, None
        if span is not None:
            span.__exit__(None, None, None)
        try:
            before, self._sizes = self._sizes, sizes.now()
            recompiled, self._now = self._now, []
            for code, recompile in recompiled:
                if recompile.dim is None:  # it was compiled again for another reason: the sizes may be as they like
                    continue
                place = sizes.place(code)
                moved = sizes.changed(before.get(place, {}), self._sizes.get(place, {}))
                self._changed += [Mark(recompile.function, source, dim, why) for source, dim, why in moved]
        except Exception:
            log.exception("the sizes at a recompile were not kept")

    def _harvest(self) -> list[tuple[CodeType, Recompile]]:
        """Keep what torch has noted since the last time."""
        from torch._dynamo.utils import guard_failures

        new = []
        with self._lock:
            for code, reasons in list(guard_failures.items()):
                before, read = self._seen.get(code, (reasons, 0))
                fresh = reasons[read if before is reasons else 0 :]
                self._seen[code] = (reasons, len(reasons))
                if fresh:
                    new.append((code, _recompile(code, [_first_line(reason) for reason in fresh])))
            self._found += new
        return new


def _first_line(reason: str) -> str:
    """A reason without the number of the compilation, the code that it comes from and the stack."""
    return reason.partition("\n")[0].partition(": ")[2].partition("  #")[0].strip()


def _recompile(code: CodeType, guards: list[str]) -> Recompile:
    place = f"{code.co_filename}:{code.co_firstlineno}"
    size = _SIZE.search(guards[0])
    if size is None:
        return Recompile(code.co_qualname, place, guards[0], also=tuple(guards[1:]))
    dim, was, now = (int(size[name]) for name in ("dim", "was", "is"))
    return Recompile(code.co_qualname, place, guards[0], size["source"], dim, was, now, tuple(guards[1:]))


def _marks(recompile: Recompile) -> Iterator[Mark]:
    for guard in (recompile.guard, *recompile.also):
        size = _SIZE.search(guard)
        # What begins with `self` or `G[` is a weight or a global of the trainer, no input.
        if size is not None and not re.match(r"(self|G)\b", size["source"]):
            yield Mark(recompile.function, size["source"], int(size["dim"]), guard)
