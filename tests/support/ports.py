"""Ports of the loopback for programs that are told where to listen."""

import contextlib
import random
import socket
from typing import Final

__all__ = ["free_port"]

_LOW_PORT: Final = 20_000
_HIGH_PORT: Final = 32_000


def free_port() -> int:
    """Return a port of the loopback on which nobody listens.

    None of those that the system gives to whoever asks for any: it would give it away before it is used.
    """
    dice = random.SystemRandom()
    while True:
        port = dice.randrange(_LOW_PORT, _HIGH_PORT)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
