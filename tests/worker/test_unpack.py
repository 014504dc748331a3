"""What a producer may put into a batch of records: however large it unpacks, and whatever its headers are called."""

import struct
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from ettwatch_faust import batches, unpack
from ettwatch_faust.intake import Origin, read
from ettwatch_faust.unpack import Unread

PLACE = TopicPartition("ett.events", 0)
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NAME = "a-header-of-a-record"

assert batches  # that it is imported is what bounds every consumer


def batch(codec: str, values: list[bytes | None], base: int = 0, headers: Any = (), name: bytes | None = None) -> bytes:
    """A batch as a broker keeps it."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for number, value in enumerate(values):
        assert builder.append(number, 1_790_000_000_000 + number, b"key-%d" % number, value, list(headers)) is not None
    data = bytearray(builder.build())
    if name is not None:
        assert len(name) == len(NAME)
        data = data.replace(NAME.encode(), name)
        data[17:21] = struct.pack(">I", calc_crc32c(bytes(data[21:])))
    data[0:8] = struct.pack(">q", base)
    return bytes(data)


def fetched(data: bytes, offset: int = 0) -> tuple[list[Any], int]:
    """What a consumer makes of what it fetched, and the offset at which it goes on."""
    records = PartitionRecords(PLACE, fetcher.MemoryRecords(data), [], offset, None, None, True, 0)
    return list(records), records.next_fetch_offset


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(unpack, "MOST_BYTES", 100_000)
    return 100_000


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_within_the_bound_is_as_it_was(codec: str, small: int) -> None:
    values = [b"x" * 40_000, None, b"", b"y" * 50_000]
    found, after = fetched(batch(codec, values, 7, headers=[(NAME, b"h"), ("none", None)]), 7)
    assert [(each.offset, each.key, each.value) for each in found] == [
        (7 + number, b"key-%d" % number, value) for number, value in enumerate(values)
    ]
    assert found[0].headers == ((NAME, b"h"), ("none", None))
    assert after == 11


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_unpacks_to_too_much_is_one_record_that_says_so(codec: str, small: int) -> None:
    data = batch(codec, [b"a"], 0) + batch(codec, [b"x" * 60_000] * 5, 1) + batch(codec, [b"b"], 6)
    found, after = fetched(data)
    assert [each.offset for each in found] == [0, 1, 6]
    assert [found[0].value, found[2].value] == [b"a", b"b"]
    value = found[1].value
    assert isinstance(value, Unread)
    assert (value, value.records, found[1].key, found[1].headers) == (b"", 5, None, ())
    assert after == 7
    # Whoever asks for what comes behind its first record gets what comes behind all of them.
    found, after = fetched(data[len(batch(codec, [b"a"], 0)) :], 2)
    assert ([each.offset for each in found], after) == ([6], 7)


def test_it_becomes_a_dead_letter(small: int) -> None:
    record = fetched(batch("zstd", [b"x" * 60_000] * 5, 1), 1)[0][0]
    taken = read(Origin("ett.events", 0, record.offset, record.key, record.value, 1_790_000_000_000_000))
    (letter,) = taken.letters
    assert (letter.code, letter.value, letter.offset, taken.events) == ("too_large", None, 1, ())
    assert letter.reason.startswith("the batch of the records 1 to 5 unpacks to more than 256 MiB; ")


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_what_is_cut_off_is_an_error_as_before(codec: str, small: int) -> None:
    data = bytearray(batch(codec, [bytes(range(256)) * 300]))
    data[-40:] = bytes(40)
    data[17:21] = struct.pack(">I", calc_crc32c(bytes(data[21:])))
    with pytest.raises(Exception, match=r"."):
        fetched(bytes(data))


@pytest.mark.parametrize("stamped", [False, True])
def test_a_header_may_be_called_anything(stamped: bool) -> None:
    values = [b"first", None, b"third"]
    data = bytearray(batch("none", values, 5, headers=[(NAME, b"h")], name=b"\xff" * len(NAME)))
    if stamped:
        data[22] |= 8  # the broker's time
        data[17:21] = struct.pack(">I", calc_crc32c(bytes(data[21:])))
    found, after = fetched(bytes(data) + batch("none", [b"next"], 8), 5)
    assert [(each.offset, each.key, each.value) for each in found] == [
        (5, b"key-0", b"first"),
        (6, b"key-1", None),
        (7, b"key-2", b"third"),
        (8, b"key-0", b"next"),
    ]
    times = [each.timestamp - 1_790_000_000_000 for each in found[:3]]
    assert times == ([2, 2, 2] if stamped else [0, 1, 2])
    assert after == 9
