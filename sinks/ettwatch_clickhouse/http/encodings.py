"""Compressed bodies: whole streams of any number of frames, in pieces, within a limit."""

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, Protocol

from ettwatch_clickhouse.http.fence import Refusal

__all__ = ["Compressor", "accepted", "compressor", "decompressed"]


class Compressor(Protocol):
    """Compresses one stream."""

    def compress(self, data: bytes) -> bytes:
        """Return what is ready."""

    def flush(self) -> bytes:
        """Return the rest."""


class _Lz4:
    """An lz4 frame; unlike the others it has to be begun."""

    def __init__(self, module: Any) -> None:
        self._inner = module.LZ4FrameCompressor()
        self._begun = False

    def compress(self, data: bytes) -> bytes:
        begin: bytes = b"" if self._begun else self._inner.begin()
        self._begun = True
        return begin + bytes(self._inner.compress(data))

    def flush(self) -> bytes:
        return self.compress(b"") + bytes(self._inner.flush())


class _Brotli:
    """A brotli stream; its compressor has other names."""

    def __init__(self, module: Any) -> None:
        self._inner = module.Compressor(quality=4)

    def compress(self, data: bytes) -> bytes:
        return bytes(self._inner.process(data))

    def flush(self) -> bytes:
        return bytes(self._inner.finish())


def _optional(*names: str) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


_LZ4: Final = _optional("lz4.frame")
_ZSTD: Final = _optional("compression.zstd", "backports.zstd")
_BROTLI: Final = _optional("brotli")


def _compressors() -> dict[str, Callable[[], Compressor]]:
    made: dict[str, Callable[[], Compressor]] = {
        "gzip": lambda: zlib.compressobj(1, wbits=31),
        "deflate": lambda: zlib.compressobj(1),
    }
    if _LZ4:
        made["lz4"] = lambda: _Lz4(_LZ4)
    if _ZSTD:
        made["zstd"] = lambda: _ZSTD.ZstdCompressor()
    if _BROTLI:
        made["br"] = lambda: _Brotli(_BROTLI)
    return made


def _decompressors() -> dict[str, Callable[[], Any]]:
    made: dict[str, Callable[[], Any]] = {
        "gzip": lambda: zlib.decompressobj(31),
        "deflate": lambda: zlib.decompressobj(),
    }
    if _LZ4:
        made["lz4"] = lambda: _LZ4.LZ4FrameDecompressor()
    if _ZSTD:
        made["zstd"] = lambda: _ZSTD.ZstdDecompressor()
    if _BROTLI:
        made["br"] = lambda: _BROTLI.Decompressor()
    return made


_COMPRESSORS: Final = _compressors()
_DECOMPRESSORS: Final = _decompressors()


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
        raise Refusal(89, "UNKNOWN_COMPRESSION_METHOD", f"Content-Encoding {encoding} is not known; send one of {known}")
    inner: Any = None
    try:
        for chunk in chunks:
            data = chunk
            while data:
                inner = inner or make()
                piece = inner.process(data) if hasattr(inner, "process") else inner.decompress(data)
                if piece:
                    yield bytes(piece)
                data = b""
                if getattr(inner, "eof", False):
                    data, inner = inner.unused_data or b"", None
    except Refusal:
        raise
    except Exception as e:  # each library has its own
        raise Refusal(271, "CANNOT_DECOMPRESS", f"the body is no {encoding} data: {e}") from e
    if inner is not None and hasattr(inner, "eof"):
        raise Refusal(271, "CANNOT_DECOMPRESS", f"the {encoding} data end in the middle")
