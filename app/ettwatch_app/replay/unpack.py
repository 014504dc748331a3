"""From the bytes of a file, packed or not, to chunks of text: gzip and zstd are told by their first bytes.

What stands before a damaged place is always handed on first.
"""

import zlib
from collections.abc import Callable, Iterator

CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# One zstd block is at most 128 KiB of text; small steps lose less of it to a damaged place.
_ZSTD_STEP = 4096
_FOREIGN = {
    b"BZh": "bzip2 data; unpack it with bunzip2",
    b"\xfd7zXZ\x00": "xz data; unpack it with unxz",
    b"PK\x03\x04": "a zip archive; unpack it with unzip",
    b"PAR1": "a Parquet file; export it as JSON lines",
    b"\xff\xfe": "UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)",
    b"\xfe\xff": "UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)",
}


class DamagedInput(Exception):
    """The input ends or breaks in the middle; what was readable before that place has been given."""


class ForeignInput(Exception):
    """The input is of a kind that is not read here; the message names it and what to do."""


def unpacked(read: Callable[[int], bytes], seen: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the text behind `read(size)` in chunks; tell `seen` how many stored bytes were taken.

    Raises DamagedInput after the last readable chunk, ForeignInput before the first, OSError as `read` does.
    """
    chunks = _taken(read, seen)
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= 6:
            break
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise ForeignInput(f"this is {what}")
    if head.startswith(_GZIP):
        yield from _gunzip(head, chunks)
    elif head.startswith(_ZSTD):
        yield from _unzstd(head, chunks)
    else:
        yield head.removeprefix(b"\xef\xbb\xbf")
        yield from chunks


def _taken(read: Callable[[int], bytes], seen: Callable[[int], None]) -> Iterator[bytes]:
    while chunk := read(CHUNK):
        yield chunk
        seen(len(chunk))


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Drop a byte order mark before the first chunk that has text."""
    for chunk in chunks:
        yield chunk.removeprefix(b"\xef\xbb\xbf")
        break
    yield from chunks


def _gunzip(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield from _without_mark(_gzip_members(head, chunks))


def _gzip_members(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    member = zlib.decompressobj(31)
    data: bytes | None = head
    taken = 0
    while data is not None:
        taken += len(data)
        while data:
            before = member.copy()
            try:
                text = member.decompress(data, CHUNK)
            except zlib.error as error:
                yield from _salvaged(before, data)
                raise DamagedInput(
                    f"the gzip data is damaged within the {taken:,} bytes read so far ({error})"
                ) from None
            if text:
                yield text
            if member.eof:
                data = member.unused_data.lstrip(b"\0")
                if data and not _GZIP.startswith(data[:2]):
                    raise DamagedInput("bytes that are no gzip data follow the end of the gzip data")
                if data:
                    member = zlib.decompressobj(31)
            else:
                data = member.unconsumed_tail
        data = next(chunks, None)
        if data is not None and member.eof:
            data = data.lstrip(b"\0")
            member = zlib.decompressobj(31) if data else member
    if not member.eof:
        yield member.flush()
    if not member.eof:
        raise DamagedInput(f"the gzip data ends too early, after {taken:,} bytes: the file was cut off")


def _salvaged(member: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """What can be unpacked of `data` before the damaged byte, sought in smaller and smaller pieces."""
    size = max(1, len(data) // 32)
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        before = member.copy()
        try:
            yield member.decompress(piece)
        except zlib.error:
            if size > 1:
                yield from _salvaged(before, piece)
            return


def _unzstd(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield from _without_mark(_zstd_frames(head, chunks))


def _zstd_frames(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    fresh = True
    data: bytes | None = head
    taken = 0
    while data is not None:
        at = 0
        while at < len(data):
            step = data[at : at + _ZSTD_STEP]
            at += len(step)
            taken += len(step)
            while step:
                try:
                    text = frame.decompress(step)
                except zstandard.ZstdError as error:
                    raise DamagedInput(f"the zstd data is damaged within the first {taken:,} bytes ({error})") from None
                if text:
                    yield text
                fresh = False
                step = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                    fresh = True
        data = next(chunks, None)
    if not fresh:
        raise DamagedInput(f"the zstd data ends too early, after {taken:,} bytes: the file was cut off")
