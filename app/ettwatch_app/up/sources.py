"""Bytes of an event file, plain or packed, by offset."""

import gzip
import io
import os
from typing import Any, Final, Protocol

PRINT_BYTES: Final = 256
"""How many bytes at the beginning and before the place are remembered to know a file again."""

_STEP: Final = 256 * 1024


class Source(Protocol):
    """An open event file."""

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer only at the end.

        Raises:
            OSError: The file cannot be read.
            PackedError: What is packed is damaged or ends too early.
        """

    def close(self) -> None:
        """Close it."""


class PackedError(Exception):
    """A packed file cannot be unpacked; the message says why."""


class PlainSource:
    """A file read where it lies, so that what its writer appends is seen."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        parts: list[bytes] = []
        while size > 0 and (part := os.pread(self._fd, size, offset)):
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class PackedSource:
    """A .gz or .zst file, unpacked as it is read: forward only, with a window to read a line's beginning again."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._start()

    def _start(self) -> None:
        os.lseek(self._fd, 0, os.SEEK_SET)
        self._stream = _unpack(os.fdopen(os.dup(self._fd), "rb"), self._name)
        self._base = 0
        self._window = b""
        self._over = False

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` unpacked bytes from `offset`; an offset before the last one unpacks anew."""
        if offset < self._base:
            self._stream.close()
            self._start()
        while self._base + len(self._window) < offset + size and not self._over:
            skipped = min(max(0, offset - self._base), len(self._window))
            self._window = self._window[skipped:]
            self._base += skipped
            part = self._next()
            self._over = not part
            self._window += part
        at = offset - self._base
        return self._window[at : at + size]

    def _next(self) -> bytes:
        try:
            return self._stream.read(_STEP)
        except EOFError:
            raise PackedError("it ends before its packed data does; copy it again") from None
        except Exception as e:
            # gzip raises BadGzipFile or zlib.error, zstandard its own error: all mean damaged data.
            raise PackedError(f"it cannot be unpacked ({e}); copy it again") from e

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        os.close(self._fd)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


def _unpack(raw: io.BufferedReader, name: str) -> _Readable:
    if name.endswith(".gz"):
        return _Gzip(raw)
    return _Zstd(raw)


class _Gzip:
    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._unpacked = gzip.GzipFile(fileobj=raw)

    def read(self, size: int, /) -> bytes:
        return self._unpacked.read(size)

    def close(self) -> None:
        self._unpacked.close()
        self._raw.close()


class _Zstd:
    # Fed in small bites, so that a few bytes of nothing but zeros cannot unpack to gigabytes at once.
    _BITE: Final = 512

    def __init__(self, raw: io.BufferedReader) -> None:
        try:
            import zstandard
        except ModuleNotFoundError:
            raw.close()
            raise PackedError("reading .zst needs the package zstandard: install ettwatch[cli]") from None
        self._raw = raw
        self._new = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._left = b""

    def read(self, size: int, /) -> bytes:
        out: list[bytes] = []
        while size > 0:
            bite = self._left or self._raw.read(self._BITE)
            self._left = b""
            if not bite:
                if self._frame is not None:
                    raise EOFError
                break
            if self._frame is None:
                self._frame = self._new()
            part = self._frame.decompress(bite)
            if self._frame.eof:
                self._left = self._frame.unused_data
                self._frame = None
            out.append(part)
            size -= len(part)
        return b"".join(out)

    def close(self) -> None:
        self._raw.close()
