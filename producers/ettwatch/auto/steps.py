"""From steps of optimizers to steps of the loop: which optimizer counts, where the loop began, how far it is."""

import weakref
from time import monotonic_ns
from typing import Any, Final

from ettwatch.auto.recorder import AutoRecorder
from ettwatch.auto.resume import first_step
from ettwatch.auto.session import Session
from ettwatch.log import trouble

PATIENCE: Final = 64
"""Steps of another optimizer without one of the leading one, after which the other leads."""


class Steps:
    """Of several optimizers, as in adversarial training, one leads: the first, while it lives and goes on."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lead: weakref.ref[Any] | None = None
        self._others: dict[int, int] = {}
        self._opened: AutoRecorder | None = None
        self.count = 0
        """Steps of the leading optimizer in this process."""
        self.by_batch = False
        """Batches count as steps: no optimizer was seen to step."""

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has done a step. Raises nothing."""
        try:
            lead = self._lead
            if lead is None or lead() is not optimizer:
                if not self._takes_the_lead(optimizer):
                    return
            elif self._others:
                self._others.clear()
            self.count += 1
            if not self.by_batch:
                self._advance(optimizer, None)
        except Exception as error:
            trouble("counting a step", error)

    def batches_done(self, number: int = 1, first_ns: int | None = None) -> None:
        """Where batches count, so many are done with. `first_ns`: when the first of them came."""
        self.by_batch = True
        for _ in range(number):
            self._advance(None, first_ns)

    def _takes_the_lead(self, optimizer: Any) -> bool:
        if self._lead is not None and self._lead() is not None:
            mine = self._others[id(optimizer)] = self._others.get(id(optimizer), 0) + 1
            if mine <= PATIENCE:
                return False
        self._others.clear()
        self._lead = weakref.ref(optimizer)
        return True

    def _advance(self, optimizer: Any | None, from_ns: int | None) -> None:
        recorder = self._opened
        if recorder is None or not recorder.enabled:
            recorder = self._open(optimizer, from_ns)
        if recorder is not None and not recorder.by_hand:
            recorder.advance()

    def _open(self, optimizer: Any | None, from_ns: int | None) -> AutoRecorder | None:
        """Tell that the loop began, before the step that was just done."""
        session = self._session
        session.evidence()
        recorder = session.driven
        if recorder is not None:
            position = first_step(optimizer, recorder._identity, session.loaded)
            # Else by the end of what came before: the first step itself is the least of it.
            recorder.open_loop(position, from_ns or session.batch_ns or session.compiled_ns or monotonic_ns())
            self._opened = recorder
        return recorder
