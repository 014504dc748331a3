"""What kafka-python logs for the recorder's own producer: kept from the trainer's log, and listened to."""

import logging
from collections import deque
from typing import Final

THREADS: Final = ("ettwatch-", "kafka-io-ettwatch-")
"""What the names of the threads begin with for which kafka-python speaks then."""


class Quiet(logging.Filter):
    """Lets pass what kafka-python logs in threads of the trainer, and keeps the last warnings of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.said: deque[str] = deque(maxlen=20)

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record is the trainer's own."""
        if not (record.threadName or "").startswith(THREADS):
            return True
        if record.levelno >= logging.WARNING:
            try:
                self.said.append(record.getMessage())
            except Exception:
                return False
        return False


_quiet = Quiet()


def hush() -> deque[str]:
    """Put the filter on every logger of kafka-python that there is; return the last warnings it kept."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] == "kafka" and isinstance(logger, logging.Logger):
            logger.addFilter(_quiet)  # once, however often it is asked
    return _quiet.said
