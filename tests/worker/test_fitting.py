"""Dead letters of records that are larger than their topic takes."""

import random

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder

from ettwatch_faust.fitting import fitting
from ettwatch_faust.intake import Origin, read
from ettwatch_faust.outputs import letters
from ettwatch_faust.topics import TopicSettings, names, plan
from ettwatch_schemas import MAX_MESSAGE_BYTES, DeadLetter, letter_headers, read_letter

NAMES = names()
_ZSTD = 4


def refused(value: bytes | None, key: bytes | None = b"job") -> list[DeadLetter]:
    return read(Origin(NAMES.events, 3, 42, key, value, 1_790_000_000_000_000)).letters


def limit() -> int:
    (spec,) = (spec for spec in plan(TopicSettings()) if spec.name == NAMES.dlq)
    return spec.max_message_bytes


def size(letter: DeadLetter) -> int:
    """What the brokers are asked to take, packed as a worker packs it."""
    batch = BatchBuilder(1 << 20, _ZSTD, is_transactional=False)
    batch.append(timestamp=1, key=letter.key, value=letter.value, headers=letter_headers(letter))
    return len(batch._build())


def test_a_record_that_was_packed_better_than_a_worker_packs_fits() -> None:
    half = random.Random(1).randbytes(MAX_MESSAGE_BYTES)  # zstd at level 22 makes 8 MiB of two, at level 3 16 MiB
    (whole,) = refused(half + half)
    (out,) = letters(NAMES, [whole])
    told = read_letter(out.key, out.value, out.headers)
    assert size(whole) > limit() > size(told)
    assert told.value == half[: 1 << 20]
    assert (told.code, told.origin) == (whole.code, whole.origin)
    assert told.reason == f"{whole.reason}; kept: the first 1048576 of the 16777216 bytes of its value"


def test_a_huge_key_fits() -> None:
    noise = random.Random(2).randbytes(12 << 20)
    (whole,) = refused(None, noise)
    told = fitting(whole)
    assert (told.value, told.key) == (None, noise[: 64 << 10])
    assert "the first 65536 of the 12582912 bytes of its key" in told.reason
    assert size(told) < limit()


@pytest.mark.parametrize(("value", "key"), [(b"x", None), (None, b"k" * 65_536), (b"x" * (9 << 20), b"job")])
def test_what_fits_is_kept_byte_by_byte(value: bytes | None, key: bytes | None) -> None:
    (letter,) = refused(value, key)
    assert fitting(letter) is letter


def test_the_largest_that_is_kept_fits_with_all_that_is_told_of_it() -> None:
    noise = random.Random(3).randbytes
    (letter,) = refused(noise(9 << 20), noise(64 << 10))
    assert size(fitting(letter)) < limit()
