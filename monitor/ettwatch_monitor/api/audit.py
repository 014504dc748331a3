"""What was changed, by whom: a line of JSON for each try, in the log and perhaps in a file."""

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ettwatch_monitor.api.access import Identity

__all__ = ["Audit"]

_LOG: Final = logging.getLogger("ettwatch.audit")


class Audit:
    """Keeps the record.

    Args:
        file: Appended to; None for the log only.
        clock: The time in seconds since the Unix epoch.

    Raises OSError where the file cannot be written to.
    """

    def __init__(self, file: Path | None, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        if file is not None:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))

    def told(self, who: Identity, address: str | None, what: str, result: str, **facts: object) -> None:
        """Keep that somebody changed something, or tried. Raises OSError."""
        line = json.dumps(
            {
                "at_us": int(self._clock() * 1e6),
                "user": who.user,
                "role": who.role,
                "auth": who.auth,
                "address": address,
                "what": what,
                "result": result,
                **facts,
            },
            ensure_ascii=True,
        )
        _LOG.info("%s", line)
        if self._file is not None:
            handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, line.encode() + b"\n")  # one write: lines of two threads stay apart
            finally:
                os.close(handle)
