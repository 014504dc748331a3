"""Compressed bodies: whole streams of any number of frames, in pieces of bounded size."""

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, Protocol

from ettwatch_clickhouse.http.fence import Refusal

__all__ = ["Compressor", "accepted", "compressor", "decompressed"]

_PIECE: Final = 1 << 20


class Compressor(Protocol):
    """Compresses one stream."""

    def compress(self, data: bytes, /) -> bytes:
        """Return what is ready."""

    def flush(self) -> bytes:
        """Return the rest."""


class _Lz4:
    """An lz4 frame; unlike the others it has to be begun."""

    def __init__(self) -> None:
        self._inner = _LZ4.LZ4FrameCompressor()
        self._begun = False

    def compress(self, data: bytes, /) -> bytes:
        begin: bytes = b"" if self._begun else self._inner.begin()
        self._begun = True
        return begin + bytes(self._inner.compress(data))

    def flush(self) -> bytes:
        return self.compress(b"") + bytes(self._inner.flush())


class _Unzip:
    """A zlib decompressor with the face of the others."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


_LZ4: Final[Any] = import_module("lz4.frame")  # it has no types


def _zstd() -> Any:
    try:
        return import_module("compression.zstd")  # Python 3.14
    except ImportError:
        return import_module("backports.zstd")


_COMPRESSORS: Final[dict[str, Callable[[], Compressor]]] = {
    "gzip": lambda: zlib.compressobj(1, wbits=31),
    "deflate": lambda: zlib.compressobj(1),
    "lz4": _Lz4,
    "zstd": lambda: _zstd().ZstdCompressor(),
}
_DECOMPRESSORS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: _Unzip(31),
    "deflate": lambda: _Unzip(15),
    "lz4": _LZ4.LZ4FrameDecompressor,
    "zstd": lambda: _zstd().ZstdDecompressor(),
}


def accepted(header: str) -> str | None:
    """Return the first encoding of an ``Accept-Encoding`` that is known here."""
    for part in header.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip() in _COMPRESSORS and weight.replace(" ", "") not in ("q=0", "q=0.0"):
            return name.strip()
    return None


def compressor(name: str) -> Compressor:
    """Return a compressor for an encoding that `accepted` returned."""
    return _COMPRESSORS[name]()


def decompressed(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield a body without its compression; it may consist of several frames.

    Raises:
        Refusal: The encoding is not known, or the body is broken.
    """
    if encoding in ("", "identity"):
        yield from chunks
        return
    make = _DECOMPRESSORS.get(encoding)
    if make is None:
        known = ", ".join(sorted(_DECOMPRESSORS))
        raise Refusal(
            89, "UNKNOWN_COMPRESSION_METHOD", f"Content-Encoding {encoding} is not known; send one of {known}"
        )
    frame: Any = None
    for chunk in chunks:
        data = chunk
        while data or (frame is not None and not frame.needs_input):
            frame = frame or make()
            try:
                piece = frame.decompress(data, _PIECE)
            except Exception as e:  # each library has its own
                raise Refusal(271, "CANNOT_DECOMPRESS", f"the body is no {encoding} data: {e}") from e
            data = b""
            if piece:
                yield bytes(piece)
            if frame.eof:
                data, frame = frame.unused_data or b"", None
    if frame is not None:
        raise Refusal(271, "CANNOT_DECOMPRESS", f"the {encoding} data end in the middle")
