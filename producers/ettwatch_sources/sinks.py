"""Where events go: files of the spool folder, or a stream."""

import os
import socket
import time
from typing import IO, Final, Protocol

from ettwatch.spool import SpoolFile

_BUFFER: Final = 256 * 1024
_ROLL: Final = 64 << 20


class Sink(Protocol):
    """Takes lines of events. Every method raises OSError as it comes."""

    def write(self, line: bytes) -> None:
        """Take one line, its line break included."""

    def flush(self) -> None:
        """Hand everything on: after it the kernel has every line."""

    def close(self) -> None:
        """Flush and end."""


class StreamSink:
    """Writes to an open stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, line: bytes) -> None:
        """Take one line."""
        self._stream.write(line)

    def flush(self) -> None:
        """Hand everything on."""
        self._stream.flush()

    def close(self) -> None:
        """Flush; the stream stays open, it is the caller's."""
        self._stream.flush()


class SpoolSink:
    """Writes files that `ettwatch up` follows. A file appears with its first lines, and a new one follows at 64 MiB.

    Args:
        folder: The spool folder; it is made.
        prefix: What the files' names begin with.
    """

    def __init__(self, folder: str, prefix: str) -> None:
        self._folder = folder
        host = socket.gethostname().split(".")[0][:40] or "host"
        self._stem = f"{prefix}.{host}.{os.getpid()}.{time.time_ns()}"
        self._number = 0
        self._file: SpoolFile | None = None
        self._held: list[bytes] = []
        self._size = 0

    def write(self, line: bytes) -> None:
        """Take one line."""
        self._held.append(line)
        self._size += len(line)
        if self._size >= _BUFFER:
            self.flush()

    def flush(self) -> None:
        """Hand everything on."""
        if not self._held:
            return
        if self._file is not None and self._file.size >= _ROLL:
            self._file.close()
            self._file = None
        if self._file is None:
            self._number += 1
            self._file = SpoolFile(self._folder, f"{self._stem}.{self._number}")
        self._file.write(b"".join(self._held), False)
        self._held, self._size = [], 0

    def close(self) -> None:
        """Flush and close the file, which says that nothing follows."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
