"""Event files: one for all, or one for each job."""

import gzip
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from ettwatch.names import slug
from ettwatch_sim.life.batches import Message

_MOST_OPEN: Final = 100
SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
"""What event files are called."""


class OneFile:
    """Writes all messages to one file, a line each; packed, where its name ends in `.gz` or `.zst`."""

    def __init__(self, path: Path | None, plain: IO[bytes] | None = None) -> None:
        """Args: path: The file, which is replaced; plain: a stream that is open, instead of it."""
        self._file: Any = plain if path is None else _opened(path)
        self._own = path is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own:
            self._file.close()
        else:
            self._file.flush()

    def put(self, message: Message) -> None:
        """Write a message. Raises OSError."""
        self._file.write(message.value + b"\n")


class Folder:
    """Writes the messages of each job to a file of its own, as a spool folder holds them.

    Raises FileExistsError where the folder holds event files already: they would be two fleets.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if any(each.name.endswith(SUFFIXES) for each in path.iterdir()):
            raise FileExistsError(17, "there are event files in it already; give an empty folder", str(path))
        self._path = path
        self._open: OrderedDict[str, IO[bytes]] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def put(self, message: Message) -> None:
        """Write a message. Raises OSError."""
        name = f"{slug(message.job, 200)}.jsonl"
        file = self._open.get(name)
        if file is None:
            if len(self._open) >= _MOST_OPEN:
                self._open.popitem(last=False)[1].close()
            file = self._open[name] = (self._path / name).open("ab")
        else:
            self._open.move_to_end(name)
        file.write(message.value + b"\n")


def _opened(path: Path) -> Any:
    if path.name.endswith(".gz"):
        return gzip.open(path, "wb", compresslevel=5)
    if path.name.endswith(".zst"):
        import zstandard

        return zstandard.open(path, "wb")
    return path.open("wb")
