"""Packed input: any number of members, in any pieces, damaged anywhere: what was readable is given."""

import gzip
import io
from collections.abc import Callable
from random import Random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_app.replay.unpack import DamagedInput, unpacked

Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKS = pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gz", "zst"])


def read_all(data: bytes, piece: int = 1 << 20) -> tuple[bytes, str]:
    """The text that came out, and what was wrong."""
    out = b""
    source = io.BytesIO(data)
    seen: list[int] = []
    try:
        for chunk in unpacked(lambda _: source.read(piece), seen.append):
            out += chunk
    except DamagedInput as error:
        return out, str(error)
    assert sum(seen) == len(data)
    return out, ""


def noise(size: int, seed: int = 1) -> bytes:
    return Random(seed).randbytes(size)


@given(st.binary(max_size=300), st.integers(1, 40))
def test_plain_bytes_come_as_they_are(data: bytes, piece: int) -> None:
    if data[:2] in (b"\x1f\x8b", b"PK", b"BZ", b"\xff\xfe", b"\xfe\xff") or data[:3] == b"\xef\xbb\xbf":
        return
    assert read_all(b"{" + data, piece) == (b"{" + data, "")


@PACKS
@given(parts=st.lists(st.binary(max_size=500), min_size=1, max_size=4), piece=st.integers(1, 60))
def test_members_one_after_the_other(pack: Pack, parts: list[bytes], piece: int) -> None:
    text = b"{" + b"".join(parts)
    packed = pack(b"{") + b"".join(pack(part) for part in parts)
    assert read_all(packed, piece) == (text, "")


def test_gzip_may_be_padded_with_zeros() -> None:
    assert read_all(gzip.compress(b"one") + bytes(700)) == (b"one", "")
    assert read_all(gzip.compress(b"one") + bytes(700), 300) == (b"one", "")


def test_gzip_with_something_else_behind_it() -> None:
    text, wrong = read_all(gzip.compress(b"one") + b"no gzip")
    assert text == b"one"
    assert "no gzip data" in wrong


@PACKS
def test_a_byte_order_mark_inside(pack: Pack) -> None:
    assert read_all(pack(b"\xef\xbb\xbf{}")) == (b"{}", "")


@PACKS
def test_more_text_than_one_chunk(pack: Pack) -> None:
    text = noise(3_000_000) + b"a" * 5_000_000
    assert read_all(pack(text)) == (text, "")


@PACKS
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_off(pack: Pack, share: float) -> None:
    text = noise(2_000_000)
    packed = pack(text)
    got, wrong = read_all(packed[: int(len(packed) * share)])
    assert "ends too early" in wrong
    assert text.startswith(got)
    assert len(got) > len(text) * share - 300_000


@PACKS
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_file_that_was_damaged(pack: Pack, share: float) -> None:
    text = b"".join(b"%d " % number for number in range(400_000))
    packed = bytearray(pack(text))
    at = int(len(packed) * share)
    packed[at : at + 64] = noise(64, 2)
    got, wrong = read_all(bytes(packed))
    assert "damaged" in wrong
    # Nothing that stands a block before the damage is lost.
    before, _ = read_all(bytes(packed[: at - 8_192]))
    assert len(before) > 500_000
    assert text.startswith(before)
    assert got.startswith(before)
