"""Batches of records that aiokafka cannot read, or at too high a price: no producer may stop the workers with one.

aiokafka unpacks a batch whole, whatever comes of it, and brokers bound the packed size alone: a few megabytes on the
wire may be hundreds of gigabytes. Here a batch that unpacks to more than MOST_BYTES is one record that says so, at the
offset of the first of them: it becomes a dead letter, and the stream goes on behind it. Nor does the name of a header
that is no UTF-8 matter, since nobody here looks at headers.
"""

import contextlib
import mmap
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any, Final, NamedTuple

import cramjam
from aiokafka import codec
from aiokafka.consumer import fetcher
from aiokafka.record import default_records
from aiokafka.record.memory_records import DefaultRecordBatch, _MemoryRecordsPy
from aiokafka.record.util import decode_varint_py

__all__ = ["MOST_BYTES", "Unread", "install"]

MOST_BYTES: Final = 256 << 20
"""Bytes of an unpacked batch at most; JSON of the largest batch, 9 MiB, has about half of that."""

_TIMES: Final = {"gzip": 1_100, "snappy": 22, "lz4": 256, "zstd": 44_000}
"""How many times as large as the packed bytes the unpacked ones can be."""


class Unread(bytes):
    """The value of a record that stands for a batch that was not unpacked; it is empty.

    Attributes:
        records: How many records the batch has.
    """

    records: int


class _TooLarge(Exception):
    """A batch unpacks to too much."""


class _Stand(NamedTuple):
    """A record as the fetcher takes it."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[()] = ()
    checksum: None = None


class _Headless(default_records._DefaultRecordBatchPy):  # type: ignore[misc]
    """A batch of which the headers are passed over: their names may be no UTF-8, on which aiokafka stops for good."""

    _pos: int

    def _read_msg(self, decode_varint: Any = decode_varint_py) -> Any:
        buffer = self._buffer
        length, pos = decode_varint(buffer, self._pos)
        self._pos = pos + length
        _, pos = decode_varint(buffer, pos)
        ts_delta, pos = decode_varint(buffer, pos)
        offset_delta, pos = decode_varint(buffer, pos)
        key, pos = _text(buffer, *decode_varint(buffer, pos))
        value, pos = _text(buffer, *decode_varint(buffer, pos))
        stamped = self.timestamp_type == self.LOG_APPEND_TIME
        stamp = self.max_timestamp if stamped else self.first_timestamp + ts_delta
        return _Stand(self.base_offset + offset_delta, stamp, self.timestamp_type, key, value)


def _text(buffer: Any, size: int, pos: int) -> tuple[bytes | None, int]:
    return (None, pos) if size < 0 else (bytes(buffer[pos : pos + size]), pos + size)


class _Batch:
    """A batch, with one record in place of all where it is too large."""

    __slots__ = ("_batch", "_data")

    def __init__(self, batch: Any, data: Any) -> None:
        self._batch = batch
        self._data = data

    def __iter__(self) -> Iterator[Any]:
        batch, done = self._batch, 0
        try:
            for record in batch:  # unpacks it before the first
                yield record
                done += 1
        except _TooLarge:
            value = Unread()
            value.records = batch.next_offset - batch.base_offset
            yield _Stand(batch.base_offset, batch.max_timestamp, batch.timestamp_type, None, value)
        except UnicodeDecodeError:
            yield from islice(_Headless(self._data), done, None)

    def __next__(self) -> Any:
        return next(self._batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)


class _Records(_MemoryRecordsPy):  # type: ignore[misc]
    """What was fetched of a partition."""

    def next_batch(self, *args: Any) -> Any:
        data = self._next_slice
        batch = super().next_batch(*args)
        return _Batch(batch, data) if isinstance(batch, DefaultRecordBatch) else batch


def install() -> None:
    """Have every aiokafka consumer of this process keep to the bound."""
    fetcher.MemoryRecords = _Records
    modules: list[Any] = [default_records]
    with contextlib.suppress(ImportError):  # where aiokafka was built without them
        modules.append(import_module("aiokafka.record._crecords.default_records"))
    for module in modules:
        for name, bounded in _BOUNDED.items():
            setattr(module, f"{name}_decode", bounded)


def _gzip(data: Any) -> bytes:
    if len(data) * _TIMES["gzip"] <= MOST_BYTES:
        return bytes(codec.gzip_decode(data))
    parts: list[bytes] = []
    left, rest = MOST_BYTES, bytes(data)
    while rest:
        member = zlib.decompressobj(31)
        parts.append(member.decompress(rest, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise _TooLarge
        if not member.eof:
            raise OSError("the gzip data end in the middle")
        rest = member.unused_data
    return b"".join(parts)


def _snappy(data: Any) -> bytes:
    if len(data) * _TIMES["snappy"] > MOST_BYTES:
        raise _TooLarge
    return bytes(codec.snappy_decode(data))


def _into(name: str, usual: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    unpack_into: Callable[[Any, Any], int] = getattr(cramjam, name).decompress_into

    def bounded(data: Any) -> bytes:
        if len(data) * _TIMES[name] <= MOST_BYTES:
            return usual(data)
        with mmap.mmap(-1, MOST_BYTES) as room:  # takes memory only where it is written
            try:
                size = unpack_into(data, room)
            except cramjam.DecompressionError as error:
                if "whole buffer" in str(error):
                    raise _TooLarge from None
                raise
            return room[:size]

    return bounded


_BOUNDED: Final[dict[str, Callable[[Any], bytes]]] = {
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _into("lz4", codec.lz4_decode),
    "zstd": _into("zstd", codec.zstd_decode),
}
