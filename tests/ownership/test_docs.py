"""docs/ownership.md tells what is so."""

import re
from pathlib import Path

import click
import pytest

from ettwatch_app.commands.owners import owners
from ettwatch_clickhouse import EmbeddedStore
from ettwatch_core.ownership import parse_owners

PAGE = (Path(__file__).parents[2] / "docs" / "ownership.md").read_text("utf-8")


def test_every_column_of_the_view_is_told(engine: EmbeddedStore) -> None:
    columns = engine.query(
        "SELECT name, type, comment FROM system.columns WHERE database = currentDatabase() AND table = 'owners' "
        "ORDER BY position"
    ).rows
    told = [line for line in PAGE.splitlines() if re.match(r"\| `\w+` \| `", line)]
    assert told == [f"| `{name}` | `{kind}` | {meaning} |" for name, kind, meaning in columns]


def test_the_file_shown_is_right_and_the_answer_is_the_one_shown() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    known = parse_owners(text, "owners.yaml")
    rule = known.rule("trainer_init.checkpoint_load.read", "eu-1")
    assert rule is not None
    told = (rule.stage, rule.cluster, rule.owner.system, rule.owner.team, rule.owner.contact, str(rule.line))
    assert " ".join(filter(None, told)) in re.sub(" +", " ", PAGE)


def test_the_query_shown_finds_the_owner(engine: EmbeddedStore) -> None:
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert engine.query(query).rows == [("",)]


@pytest.mark.parametrize("name", owners.commands)
def test_every_option_is_told_and_has_help(name: str) -> None:
    section = re.search(rf"^## ettwatch owners {name}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    assert section
    options = [each for each in owners.commands[name].params if isinstance(each, click.Option)]
    assert all(option.help for option in options)
    told = set(re.findall(r"--[a-z]+", section[1].splitlines()[1]))
    assert told == {option.opts[0] for option in options}
