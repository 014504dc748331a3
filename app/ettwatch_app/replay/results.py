"""Finished summaries, given back in the order in which their jobs first appeared, in bounded memory."""

import heapq
import struct
import tempfile
from collections.abc import Iterator
from typing import IO

_HEAD = struct.Struct("<QI")
_READ = 1 << 16


class Results:
    """Takes (place of the first event, JSON line) in any order; gives the lines back sorted by place."""

    def __init__(self, budget: int = 32 << 20) -> None:
        self._budget = budget
        self._held: list[tuple[int, bytes]] = []
        self._size = 0
        self._runs: list[tuple[int, int]] = []
        self._file: IO[bytes] | None = None

    def add(self, place: int, line: bytes) -> None:
        """Keep one line. Raises OSError when a temporary file cannot take more."""
        self._held.append((place, line))
        self._size += len(line) + 120
        if self._size > self._budget:
            self._flush()

    def _flush(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="ettwatch-replay-")  # noqa: SIM115 - lives as long as this object
        self._held.sort()
        start = self._file.seek(0, 2)
        for place, line in self._held:
            self._file.write(_HEAD.pack(place, len(line)))
            self._file.write(line)
        self._runs.append((start, self._file.tell()))
        self._held = []
        self._size = 0

    def _run(self, file: IO[bytes], start: int, end: int) -> Iterator[tuple[int, bytes]]:
        rest = b""
        at = start
        while at < end or rest:
            file.seek(at)
            data = rest + file.read(min(_READ, end - at))
            at = min(at + _READ, end)
            offset = 0
            while offset + _HEAD.size <= len(data):
                place, size = _HEAD.unpack_from(data, offset)
                if offset + _HEAD.size + size > len(data):
                    break
                offset += _HEAD.size
                yield place, data[offset : offset + size]
                offset += size
            rest = data[offset:]

    def __iter__(self) -> Iterator[bytes]:
        self._held.sort()
        parts: list[Iterator[tuple[int, bytes]]] = [iter(self._held)]
        if self._file is not None:
            parts += [self._run(self._file, start, end) for start, end in self._runs]
        for _, line in heapq.merge(*parts):
            yield line

    def close(self) -> None:
        """Give the temporary file back."""
        if self._file is not None:
            self._file.close()
