"""Lines out of chunks, however the chunks fall."""

from hypothesis import given
from hypothesis import strategies as st

from ettwatch_app.replay.lines import batches

LIMIT = 10


def lines_of(chunks: list[bytes]) -> tuple[dict[int, bytes], list[int], bool]:
    long: list[int] = []
    lines: dict[int, bytes] = {}
    cut = False
    for batch in batches(chunks, LIMIT, long.append):
        assert not cut, "nothing comes after a line without a line break"
        cut = batch.cut
        for number, line in enumerate(batch.lines, batch.first):
            assert number not in lines
            lines[number] = line
    return lines, long, cut


@given(st.lists(st.integers(0, 25), max_size=12), st.booleans(), st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_any_chunks_give_the_same_lines(lengths: list[int], ended: bool, cuts: list[int]) -> None:
    wanted = [bytes([97 + place % 26]) * length for place, length in enumerate(lengths)]
    text = b"\n".join(wanted) + (b"\n" if ended and wanted else b"")
    chunks: list[bytes] = []
    at = 0
    while at < len(text):
        size = cuts[len(chunks) % len(cuts)]
        chunks.append(text[at : at + size])
        at += size
    lines, long, cut = lines_of(chunks)
    assert long == [number for number, line in enumerate(wanted, 1) if len(line) > LIMIT]
    short = {number: line for number, line in enumerate(wanted, 1) if 0 < len(line) <= LIMIT}
    assert {number: line for number, line in lines.items() if line} == short
    assert cut == (bool(wanted) and not ended and 0 < len(wanted[-1]) <= LIMIT)


def test_a_line_without_end_takes_no_more_memory_than_the_limit() -> None:
    pieces = (b"x" * 8 for _ in range(10_000))
    long: list[int] = []
    assert list(batches(pieces, LIMIT, long.append)) == []
    assert long == [1]
