"""HTTP with clients that are slow, on purpose or not: a request has to arrive in time, an answer has to be accepted."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["patient"]


def patient(head_s: float) -> type[H11Protocol]:
    """Return uvicorn's protocol with a limit (seconds) to the time that the head of a request takes to arrive."""

    class Patient(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # A head that came whole needs no limit; the rest of the time the application has its own.
            if self.conn.their_state is not h11.IDLE:
                self._stop()
            elif self._late is None and self.conn.trailing_data[0]:
                self._wait()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._stop()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._late = self.loop.call_later(head_s, self._end)

        def _stop(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _end(self) -> None:
            self._late = None
            self.transport.abort()

    return Patient
