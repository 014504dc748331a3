"""The body of a request as a stream of pieces, however it was sent, within a limit."""

from collections.abc import Iterator
from io import BufferedIOBase
from typing import Final

from ettwatch_clickhouse.http.encodings import decompressed
from ettwatch_clickhouse.http.fence import Refusal

__all__ = ["Body"]

_PIECE: Final = 1 << 16
_LINE: Final = 1 << 10


class Body:
    """A request's body.

    Args:
        stream: Of the connection.
        length: ``Content-Length``; None if there is none.
        chunked: It comes in chunks.
        encoding: ``Content-Encoding``.
        limit: Most bytes, on the wire and unpacked.
    """

    def __init__(self, stream: BufferedIOBase, length: int | None, chunked: bool, encoding: str, limit: int) -> None:
        self._stream = stream
        self._length = length
        self._chunked = chunked
        self._limit = limit
        self._wire = self._chunks() if chunked else self._plain()
        self._pieces = self._limited(decompressed(self._limited(self._wire), encoding))
        self.ended = not chunked and not length
        """Everything was read from the connection."""

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def drain(self, most: int) -> None:
        """Read what is left, so that the next request can be read; gives up beyond some bytes."""
        try:
            for piece in self._wire:
                most -= len(piece)
                if most < 0:
                    return
        except (Refusal, OSError):
            return

    def _limited(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > self._limit:
                raise Refusal(
                    229, "QUERY_IS_TOO_LARGE", f"the body is larger than {self._limit} bytes; send it in parts"
                )
            yield piece

    def _plain(self) -> Iterator[bytes]:
        left = self._length or 0
        while left:
            piece = self._stream.read1(min(left, _PIECE))
            if not piece:
                raise Refusal(3, "UNEXPECTED_END_OF_FILE", f"the connection ended {left} bytes before the body")
            left -= len(piece)
            self.ended = not left
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            line = self._stream.readline(_LINE)
            try:
                size = int(line.split(b";")[0].strip(), 16)
            except ValueError:
                size = -1
            if size < 0 or not line.endswith(b"\n"):
                raise Refusal(3, "UNEXPECTED_END_OF_FILE", "the chunks of the body are malformed or end early")
            if size == 0:
                while self._stream.readline(_LINE).strip():
                    pass
                self.ended = True
                return
            while size:
                piece = self._stream.read1(min(size, _PIECE))
                if not piece:
                    raise Refusal(3, "UNEXPECTED_END_OF_FILE", "the connection ended in a chunk of the body")
                size -= len(piece)
                yield piece
            self._stream.readline(_LINE)
