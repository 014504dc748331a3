"""A place for more lines than memory holds: buckets of lines, in memory up to a budget, then in one file.

The file has no name and goes away with the process, however that ends.
"""

import tempfile
from array import array
from collections.abc import Iterator
from typing import IO, NamedTuple

BITS = 8
BUCKETS = 1 << BITS
_PER_LINE = 96
"""About what a line costs in memory beyond its own bytes."""


class Block(NamedTuple):
    """Some lines of a bucket and the places where they stood."""

    places: "array[int]"
    lines: list[bytes]


class Spill:
    """Buckets of lines. `budget` is the number of bytes of memory from which on lines go to the file."""

    def __init__(self, budget: int) -> None:
        self.lines: list[list[bytes]] = [[] for _ in range(BUCKETS)]
        self.places = [array("q") for _ in range(BUCKETS)]
        self.sizes = [0] * BUCKETS
        """Bytes of text put into each bucket so far."""
        self.mixed = [False] * BUCKETS
        """Whether a bucket holds more than one job."""
        self._jobs: list[int | None] = [None] * BUCKETS
        self.held = 0
        self._budget = budget
        self._index: list[list[tuple[int, int, int]]] = [[] for _ in range(BUCKETS)]
        self._file: IO[bytes] | None = None

    @property
    def spilled(self) -> bool:
        """Whether anything has gone to the file."""
        return self._file is not None

    def add(self, job: int, level: int, place: int, line: bytes) -> None:
        """Keep one line in the bucket that `level` takes of the hash `job`.

        Raises OSError when the file cannot take more.
        """
        bucket = job >> BITS * level & BUCKETS - 1
        if self._jobs[bucket] != job:
            self.mixed[bucket] = self._jobs[bucket] is not None
            self._jobs[bucket] = job
        self.lines[bucket].append(line)
        self.places[bucket].append(place)
        self.sizes[bucket] += len(line)
        self.held += len(line) + _PER_LINE
        if self.held > self._budget:
            self.flush()

    def flush(self) -> None:
        """Move what is held in memory to the file."""
        import zstandard

        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="ettwatch-replay-")  # noqa: SIM115 - lives as long as this object
        pack = zstandard.ZstdCompressor(level=1).compress
        offset = self._file.seek(0, 2)
        for bucket in range(BUCKETS):
            lines = self.lines[bucket]
            if not lines:
                continue
            packed = pack(self.places[bucket].tobytes() + b"\n".join(lines))
            self._file.write(packed)
            self._index[bucket].append((offset, len(packed), len(lines)))
            offset += len(packed)
            self.lines[bucket] = []
            self.places[bucket] = array("q")
        self.held = 0

    def blocks(self, bucket: int) -> Iterator[Block]:
        """Yield what a bucket holds, in the order it was put there; what was in memory is given away."""
        import zstandard

        if self._file is not None:
            unpack = zstandard.ZstdDecompressor().decompress
            for offset, size, count in self._index[bucket]:
                self._file.seek(offset)
                text = unpack(self._file.read(size))
                places = array("q")
                places.frombytes(text[: 8 * count])
                yield Block(places, text[8 * count :].split(b"\n"))
        if self.lines[bucket]:
            block = Block(self.places[bucket], self.lines[bucket])
            self.lines[bucket] = []
            self.places[bucket] = array("q")
            yield block

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()
