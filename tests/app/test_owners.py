"""Ownership: the longest dotted prefix wins; a wrong file is told line by line."""

from pathlib import Path

import pytest

from ettwatch_app.owners import find_owners, load_owners
from ettwatch_core.ownership import Owner, Owners, OwnersError, parse_owners
from ettwatch_schemas import COMPONENTS, EFFECTIVE, STAGES

TEXT = """\
version: 1
owners:
  trainer_init: {system: start-up, team: trainer, contact: "#trainer"}
  trainer_init.checkpoint_load: {team: storage}
  shutdown:
    team: serving
"""


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(OwnersError) as caught:
        parse_owners(text, "owners.yaml")
    return [(line, reason) for line, reason in caught.value.problems]


def test_the_longest_prefix_wins() -> None:
    owners = parse_owners(TEXT, "owners.yaml")
    assert owners.of("trainer_init") == Owner("trainer", "start-up", "#trainer")
    assert owners.of("trainer_init.device_init.nccl") == Owner("trainer", "start-up", "#trainer")
    assert owners.of("trainer_init.checkpoint_load.read") == Owner("storage")
    assert owners.of("trainer_init.checkpoint_loader") == Owner("trainer", "start-up", "#trainer")
    assert owners.of("scheduling") is None


def test_every_documented_stage_has_a_default_owner(tmp_path: Path) -> None:
    owners = find_owners(tmp_path / "none.yaml")
    assert [stage for stage in (*COMPONENTS, EFFECTIVE, *STAGES) if owners.of(stage) is None] == []


def test_the_named_file_then_the_folders_then_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, named = tmp_path / "owners.yaml", tmp_path / "named.yaml"
    named.write_text("owners: {shutdown: {team: named}}")

    def team() -> str:
        owner = find_owners(own).of("shutdown")
        assert owner is not None
        return owner.team

    assert team() == "trainer"
    own.write_text(TEXT)
    assert team() == "serving"
    monkeypatch.setenv("ETTWATCH_OWNERS", str(named))
    assert team() == "named"
    monkeypatch.setenv("ETTWATCH_OWNERS", str(tmp_path / "gone.yaml"))
    with pytest.raises(FileNotFoundError):
        find_owners(own)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("owners:\n  shutdwn: {team: a}", 2, "'shutdwn' is under no component (did you mean 'shutdown'?)"),
        ("owners:\n  shutdown.Publish: {team: a}", 2, "is no stage name; use lower-case"),
        ("owners:\n  shutdown: {team: a}\n  shutdown: {team: b}", 3, "stands twice, first in line 2"),
        ("owners:\n  shutdown: {system: a}", 2, "names no team; add team: NAME"),
        ("owners:\n  shutdown:\n    taem: a", 3, "unknown key 'taem' (did you mean 'team'?)"),
        ("owners:\n  shutdown:\n    team: [a, b]", 3, "team of 'shutdown' must be a text that is not empty"),
        ("owners:\n  shutdown:\n    team: ''", 3, "must be a text that is not empty"),
        ("owners:\n  shutdown: trainer", 2, "must be a mapping"),
        ("owners:\n  - shutdown", 2, "owners must be a mapping"),
        ("ownres:\n  shutdown: {team: a}", 1, "unknown key 'ownres' (did you mean 'owners'?)"),
        ("version: 2\nowners:\n  shutdown: {team: a}", 1, "version must be 1"),
        ("just text", 1, "the file must be a mapping"),
        ("", 1, "the file must be a mapping"),
        ("owners: {}", 1, "nothing under the key owners"),
        ("owners:\n  shutdown: {team: a\n", 3, "not YAML"),
        ("owners:\n  a\tb: \x01", 1, "not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, words: str) -> None:
    ((at, reason),) = problems(text)
    assert at == line
    assert words in reason


def test_all_problems_are_told_at_once() -> None:
    found = problems("owners:\n  shutdwn: {team: a}\n  scheduling: {}\nmore: 1\n")
    assert [line for line, _ in found] == [2, 3, 4]


def test_the_text_names_file_and_line() -> None:
    with pytest.raises(OwnersError, match=r"^team.yaml:1: version must be 1$"):
        parse_owners("version: x\nowners: {shutdown: {team: a}}", "team.yaml")


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "owners.yaml"
    path.write_bytes(b"owners:\n  shutdown: {team: caf\xe9}\n")
    with pytest.raises(OwnersError, match=r"owners.yaml:2: not UTF-8"):
        load_owners(path)


def test_a_file_that_is_far_too_large(tmp_path: Path) -> None:
    path = tmp_path / "owners.yaml"
    path.write_bytes(b"#" * 2_000_000)
    with pytest.raises(OwnersError, match="2,000,000 bytes"):
        load_owners(path)


def test_an_alias_bomb_does_no_harm() -> None:
    bomb = "a: &a {team: x}\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(50))
    assert len(problems(bomb + "owners: {shutdown: *a}")) == 51


def test_owners_are_values() -> None:
    assert isinstance(parse_owners(TEXT, "x"), Owners)
    assert parse_owners(TEXT, "x").source == "x"
