"""Tables that fit: no word is broken, and nothing is lost."""

from io import StringIO

from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from ettwatch_app.render import fitted, print_table, show

AT = "2026-11-30T15:06:56.740596Z"


def drawn(names: list[str], rows: list[list[str]], width: int, right: tuple[int, ...] = ()) -> list[str]:
    console = Console(file=StringIO(), width=width, markup=False, highlight=False, emoji=False)
    show(console, *fitted(names, rows, right, width))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_what_fits_is_a_plain_table() -> None:
    assert drawn(["job", "n"], [["a", "5"], ["bb", "10"]], 60, (1,)) == ["job   n", "a     5", "bb   10"]


def test_lines_are_broken_between_words() -> None:
    lines = drawn(["stage", "ts", "why"], [["trainer_init.checkpoint_load", AT, "the disk was full and so it"]], 80)
    assert lines == [
        "stage                         ts                           why",
        f"trainer_init.checkpoint_load  {AT}  the disk was full and",
        f"{'':57}  so it",
    ]


def test_what_cannot_be_so_narrow_is_told_row_by_row() -> None:
    rows = [[AT, "trainer_init.checkpoint_load", AT], [AT, "shutdown", AT]]
    assert drawn(["from", "stage", "to"], rows, 60) == [
        "row 1",
        f"from   {AT}",
        "stage  trainer_init.checkpoint_load",
        f"to     {AT}",
        "row 2",
        f"from   {AT}",
        "stage  shutdown",
        f"to     {AT}",
    ]


def test_an_answer_in_a_terminal_breaks_no_time() -> None:
    console = Console(file=StringIO(), width=60, force_terminal=True, color_system=None, markup=False)
    print_table(["job", "t0", "t1"], ["String", "DateTime64(6)", "DateTime64(6)"], [["j", AT, AT]], console)
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().count(AT) == 2
    assert console.file.getvalue().endswith("1 row\n")


_WORD = st.text(st.sampled_from("abc_.4"), min_size=1, max_size=18)
_CELL = st.lists(_WORD, max_size=6).map(" ".join)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(_CELL, min_size=n, max_size=n), max_size=4)))
@example([[""]])
def test_no_word_is_broken_and_no_line_too_long(rows: list[list[str]]) -> None:
    names = [f"n{i}" for i in range(len(rows[0]))] if rows else ["n0"]
    lines = drawn(names, rows, 40)
    assert max(map(len, lines)) <= 40
    if lines[0] != "row 1":
        lines = lines[1:]
    shown = [word for line in lines for word in line.split()]
    for row in rows:
        for cell in row:
            for word in cell.split():
                assert word in shown


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=200))
def test_a_word_that_is_longer_than_the_terminal_loses_nothing(word: str) -> None:
    lines = drawn(["a", "b"], [[word, "x"]], 40)
    found = "".join("".join(line.split()) for line in lines)
    assert sum(char in word for char in found) >= len(word)
