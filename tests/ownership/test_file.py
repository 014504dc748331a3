"""What is wrong with an ownership file, or looks like it: with line numbers, and what to do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_app.owners import find_owners
from ettwatch_core.ownership import Owners, OwnersError, parse_owners

HEAD = "owners:\n  shutdown:\n    team: a\n    overrides:\n"


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(OwnersError) as caught:
        parse_owners(text, "owners.yaml")
    return [(line, reason) for line, reason in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f"{HEAD}      - {{team: b}}", 5, "names neither cluster nor model; add one of them"),
        (f"{HEAD}      - {{cluster: c}}\n      - {{cluster: c, team: b}}", 6, "twice for cluster 'c', first in line 5"),
        (f"{HEAD}      - {{model: [m, n]}}\n      - {{model: n, team: b}}", 6, "twice for model 'n', first in line 5"),
        (
            f"{HEAD}      - {{cluster: c, model: m}}\n      - {{cluster: [b, c], model: m}}",
            6,
            "twice for cluster 'c' and model 'm', first in line 5; keep one",
        ),
        (f"{HEAD}      cluster: c", 5, "overrides of 'shutdown' must be a list"),
        (f"{HEAD}      []", 5, "overrides of 'shutdown' must be a list"),
        (f"{HEAD}      - c", 5, "an override of 'shutdown' must be a mapping"),
        (f"{HEAD}      - {{cluster: c, taem: b}}", 5, "unknown key 'taem' (did you mean 'team'?)"),
        (
            f"{HEAD}      - {{cluster: [], team: b}}",
            5,
            "cluster of an override of 'shutdown' must be a text, or a list",
        ),
        (f"{HEAD}      - {{cluster: [[c]], team: b}}", 5, "must be a text that is not empty"),
        (f"{HEAD}      - {{cluster: ~, team: b}}", 5, "must be a text that is not empty"),
        ("owners:\n  shutdown:\n    overrides: [{cluster: c}]", 3, "an override of 'shutdown' names no team"),
        ("owners:\n  shutdown:\n    contact: x\n    overrides: [{cluster: c, team: a}]", 2, "a contact and no team"),
        ("owners:\n  shutdown: {team: ~}", 2, "team of 'shutdown' must be a text that is not empty"),
        ('owners:\n  shutdown: {team: "a\\e[31m"}', 2, "characters that cannot be printed"),
        ("teams: {a: {}}\nowners:\n  shutdown: {team: b}", 3, "unknown team 'b'; correct it, or declare it"),
        ("owners:\n  shutdown: {team: storge}\nteams: {storage: {}}", 2, "(did you mean 'storage'?)"),
        ("teams: {a: {}}\nowners:\n  shutdown: {team: a,\n   overrides: [{model: m, team: b}]}", 4, "unknown team 'b'"),
        ("teams: [a]\nowners: {shutdown: {team: a}}", 1, "teams must be a mapping"),
        ("teams:\n  a: x\nowners: {shutdown: {team: a}}", 2, "team 'a' must be a mapping"),
        ("teams:\n  a: {chat: x}\nowners: {shutdown: {team: a}}", 2, "unknown key 'chat'"),
        ("teams:\n  a: {contact: {b: c}}\nowners: {shutdown: {team: a}}", 2, "must be a text, or a list of texts"),
        ("teams:\n  ' ': {}\nowners: {shutdown: {team: a}}", 2, "name of a team"),
        ("teams:\n  a: {}\n  a: {}\nowners: {shutdown: {team: a}}", 3, "stands twice, first in line 2; keep one"),
        ("ownres:\n  shutdown: {team: a}", 1, "unknown key 'ownres' (did you mean 'owners'?)"),
        ("teams: {a: {}}", 1, "nothing under the key owners"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, words: str) -> None:
    found = problems(text)
    assert [(at, words in reason) for at, reason in found if words in reason] == [(line, True)], found
    assert {at for at, _ in found} == {line} or "teams:\n  ' '" in text


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            f"{HEAD}      - {{cluster: c, team: b}}\n      - {{model: m, team: d}}",
            6,
            "cluster 'c' (line 5) and model 'm' (line 6) overlap: 'shutdown' of a job with both goes to 'b'",
        ),
        (f"{HEAD}      - {{cluster: c, team: a}}", 5, "names the owner of line 2; remove it"),
        (
            "owners:\n  shutdown: {system: s, team: a}\n  scheduling: {system: s, team: b}",
            3,
            "system 's' belongs to team 'b' here and to team 'a' in line 2",
        ),
        ("owners:\n  shutdown: {team: Data Ops}\n  scheduling: {team: dataops}", 3, "is spelt 'Data Ops' in line 2"),
    ],
)
def test_what_looks_like_a_mistake_is_told_and_read(text: str, line: int, words: str) -> None:
    owners = parse_owners(text, "owners.yaml")
    ((at, reason),) = owners.doubts
    assert at == line
    assert words in reason
    assert owners.rules


@pytest.mark.parametrize(
    "text",
    [
        # the override with both says what holds, so nothing is open
        f"{HEAD}      - {{cluster: c, team: b}}\n      - {{model: m, team: d}}\n"
        "      - {cluster: c, model: m, team: a}",
        f"{HEAD}      - {{cluster: c, team: b}}\n      - {{model: m, team: b}}",
        "owners:\n  shutdown: {system: s, team: a, overrides: [{cluster: c, team: b}]}\n"
        "  scheduling: {system: s, team: a}",
    ],
)
def test_what_is_right_gives_no_doubt(text: str) -> None:
    assert parse_owners(text, "owners.yaml").doubts == ()


def test_the_built_in_file_gives_no_doubt(tmp_path: Path) -> None:
    assert find_owners(tmp_path / "none", {}).doubts == ()


def test_lists_that_multiply_are_bounded() -> None:
    many = ", ".join(f"n{number}" for number in range(150))
    ((line, reason),) = problems(f"{HEAD}      - {{cluster: [{many}], model: [{many}], team: b}}\n")
    assert line == 2
    assert "more than 10,000 rules" in reason


def test_aliases_and_depth_do_no_harm() -> None:
    bomb = "x: &a [" + ",".join(["1"] * 9) + "]\n" + "".join(f"y{n}: &b{n} [*a, *a]\n" for n in range(50))
    assert problems(f"{bomb}owners: {{shutdown: {{team: *a}}}}")
    assert problems("[" * 5_000 + "]" * 5_000)
    assert problems("owners: &a {shutdown: *a}")


SCRAPS = st.sampled_from(
    [
        *("owners", "teams", "version", "shutdown", "team", "a", "1", "overrides", "cluster", "- ", ": ", "\n", "  "),
        *("{", "}", "[", "]", ", ", "&x ", "*x", "~", "'", '"', "#", "\t", "<<", "? ", "|", "é"),
    ]
)


@given(st.lists(SCRAPS, max_size=40).map("".join))
def test_any_text_is_read_or_refused_with_lines(text: str) -> None:
    told: list[tuple[int, str]] = []
    try:
        assert isinstance(parse_owners(text, "x"), Owners)
    except OwnersError as error:
        told = [*error.problems, (1, "at least one")]
    assert told != [(1, "at least one")]
    assert all(1 <= line <= text.count("\n") + 2 and reason for line, reason in told)
