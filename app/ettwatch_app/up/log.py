"""What `ettwatch up` says about itself: calm lines on stderr, for people or for log collectors."""

import json
import threading
from collections import deque
from datetime import UTC, datetime
from typing import Literal, TextIO


class Log:
    """Writes one line for each thing worth telling.

    Args:
        stream: Where to.
        form: `text`, or `json` for one object a line with `time`, `level`, `event`, `message` and figures.
    """

    def __init__(self, stream: TextIO, form: Literal["text", "json"]) -> None:
        self._stream = stream
        self._json = form == "json"
        self._lock = threading.RLock()
        self._lines: deque[str] = deque()
        self._writing = False

    def say(self, event: str, message: str, **figures: object) -> None:
        """Tell something that is as it should be. `event` is a stable slug, the figures are for machines."""
        self._write("info", event, message, figures)

    def alert(self, event: str, message: str, **figures: object) -> None:
        """Tell something that somebody should look at."""
        self._write("warning", event, message, figures)

    def _write(self, level: str, event: str, message: str, figures: dict[str, object]) -> None:
        now = datetime.now(UTC)
        if self._json:
            told = {"time": now.isoformat(timespec="milliseconds"), "level": level, "event": event}
            line = json.dumps({**told, "message": message, **figures}, ensure_ascii=False, default=str)
        else:
            mark = "! " if level == "warning" else ""
            line = f"{now.astimezone():%H:%M:%S}  {mark}{message}"
        with self._lock:
            self._lines.append(line)
            # A signal may come in the middle of a line, and a stream refuses what its handler says there: it waits.
            while self._lines and not self._writing:
                self._writing = True
                try:
                    while self._lines:
                        self._put(self._lines.popleft())
                finally:
                    self._writing = False

    def _put(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # Nobody reads the log any more. The work goes on.
            return


def named(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 file` or `1,024 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
