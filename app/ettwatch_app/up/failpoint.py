"""Places where a test can kill the process, to prove that nothing is lost or doubled there."""

import os
import signal
from typing import Final

VARIABLE: Final = "ETTWATCH_FAILPOINT"
"""`NAME` or `NAME:N`: the process kills itself with SIGKILL when it passes that place the N-th time."""

POINTS: Final = (
    "read",
    "applied",
    "published",
    "letters_written",
    "flushed",
    "in_transaction",
    "committed",
    "removed",
    "forgotten",
    "ticked",
)
"""All places, in the order of a round."""

_name, _, _count = os.environ.get(VARIABLE, "").partition(":")
_left = int(_count or 1)


def failpoint(name: str) -> None:
    """Die here if the environment says so."""
    global _left
    if name != _name:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
