"""Files of a checkpoint under torch.distributed.checkpoint: counted, checked, and slowed if asked for."""

from __future__ import annotations

import io
import time
import warnings
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemReader, FileSystemWriter

from ettwatch_trainer.remedies.checkpoints.errors import DamagedError
from ettwatch_trainer.remedies.checkpoints.marker import Marker

_PIECE = 1 << 20
METADATA = ".metadata"


class Pace:
    """Lets bytes through at `mb_s` million bytes a second; None: at once."""

    def __init__(self, mb_s: float | None) -> None:
        self._rate = None if mb_s is None else mb_s * 1e6
        self._free = 0.0

    def take(self, size: int) -> None:
        """Wait as long as slow storage would take for `size` bytes."""
        if self._rate is None:
            return
        now = time.monotonic()
        self._free = max(self._free, now) + size / self._rate
        if self._free > now:
            time.sleep(self._free - now)


class Written(io.RawIOBase):
    """A file that is written from start to end; knows its length and CRC-32."""

    def __init__(self, file: IO[bytes], pace: Pace, first: Callable[[], None]) -> None:
        self._file, self._pace, self._first = file, pace, first
        self.size, self.check = 0, 0

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _PIECE):
            piece = view[start : start + _PIECE]
            self._file.write(piece)
            self.check = zlib.crc32(piece, self.check)
            self.size += len(piece)
            self._pace.take(len(piece))
            if self._first is not None:
                first, self._first = self._first, _nothing
                first()
        return len(view)

    def tell(self) -> int:
        """The bytes written so far."""
        return self.size

    def fileno(self) -> int:
        """For fsync; what is buffered goes first."""
        self._file.flush()
        return self._file.fileno()

    def flush(self) -> None:
        """Hand on what is buffered."""
        if not self._file.closed:
            self._file.flush()


class Store(FileSystem):  # type: ignore[misc,unused-ignore]
    """The file system under a writer. `files` has the bytes and CRC-32 of each file that was written through it."""

    def __init__(self, pace: Pace, at: Callable[[str], None]) -> None:
        super().__init__()
        self._pace, self._at = pace, at
        self.files: dict[str, tuple[int, int]] = {}

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Generator[io.IOBase, None, None]:
        """Open a file to write."""
        name = Path(path).name
        stage = "metadata" if name.startswith(METADATA) else "writing"
        with Path(path).open(mode) as file:
            stream = Written(file, self._pace, lambda: self._at(stage))
            yield stream
            file.flush()
            self.files[name] = (stream.size, stream.check)

    def rename(self, path: Any, new_path: Any) -> None:
        """Give a file its final name."""
        self._at("metadata_rename")
        super().rename(path, new_path)
        self.files[Path(new_path).name] = self.files.pop(Path(path).name)


def writer(folder: Path, store: Store) -> FileSystemWriter:
    """One file for each rank, and one with the metadata; each is on disk before the save goes on."""
    made = FileSystemWriter(folder, single_file_per_rank=True, sync_files=True)
    made.fs = store
    return made


def reader(folder: Path) -> FileSystemReader:
    """What reads a checkpoint; `check` its files before."""
    return FileSystemReader(folder)


def check(folder: Path, marker: Marker, names: list[str], pace: Pace) -> None:
    """Read the named files and compare them with what was written. Raises DamagedError.

    It reads what is then read again; the second time it comes from memory.
    """
    for name in names:
        size, wanted = marker.files[name]
        found, length = 0, 0
        try:
            with (folder / name).open("rb") as file:
                while piece := file.read(_PIECE):
                    found, length = zlib.crc32(piece, found), length + len(piece)
                    pace.take(len(piece))
        except OSError as error:
            raise DamagedError(f"{folder / name} cannot be read: {error.strerror}") from error
        if (length, found) != (size, wanted):
            raise DamagedError(f"{folder / name} is not what was written: {length} of {size} bytes, CRC-32 differs")


def hush() -> None:
    """Without several ranks torch warns at each save and load that there is one; that is known here."""
    warnings.filterwarnings("ignore", message="torch.distributed is disabled, unavailable or uninitialized")


def _nothing() -> None:
    """Do nothing."""
