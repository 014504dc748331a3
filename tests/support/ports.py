"""Ports of the loopback for programs that are told where to listen."""

import contextlib
import os
import random
import socket
from typing import Final

__all__ = ["free_port"]

_LOW_PORT: Final = 20_000
_HIGH_PORT: Final = 32_000

_given: set[int] = set()


def free_port() -> int:
    """Return a port of the loopback on which nobody listens, and which was not returned before.

    None of those that the system gives to whoever asks for any: it would give it away before it is used. Test processes
    that run side by side draw from ranges of their own: what was killed finds its port free when it starts again.
    """
    dice = random.SystemRandom()
    ports = _ours()
    while len(_given) < len(ports):
        port = dice.choice(ports)
        if port in _given:
            continue
        _given.add(port)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is left")


def _ours() -> range:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not worker.isdecimal():
        return range(_LOW_PORT, _HIGH_PORT)
    of = max(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), int(worker) + 1)
    return range(_LOW_PORT + int(worker), _HIGH_PORT, of)
