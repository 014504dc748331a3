"""docs/topics.md tells of every topic, finding, option and variable, as they are."""

import re
from pathlib import Path
from typing import get_args

import click
import pytest

from ettwatch_app.commands.topics import topics
from ettwatch_faust import BROKER_VARIABLES, TopicSettings, TopicSpec, plan
from ettwatch_faust.check import Code

PAGE = (Path(__file__).parents[2] / "docs" / "topics.md").read_text("utf-8")


def row(spec: TopicSpec) -> str:
    kept = "the newest of each key" if spec.retention_ms is None else f"{spec.retention_ms // 86_400_000} d"
    clock = "broker" if spec.log_append_time else "producer"
    size = f"{spec.max_message_bytes // 2**20} MiB"
    return (
        f"| `{spec.name}` | {spec.key} | {spec.partitions} | {spec.cleanup} | {kept} | {size} | {clock} "
        f"| {spec.meaning} |"
    )


def test_every_topic_is_told_as_it_is_planned() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| `ett[.-]", line)]
    assert rows == [row(spec) for spec in plan(TopicSettings())]


def test_every_finding_is_told() -> None:
    assert re.findall(r"^\| `([a-z_]+)` \| ", PAGE, re.MULTILINE) == list(get_args(Code))


def test_every_variable_is_told() -> None:
    told = dict(re.findall(r"^\| `(ETTWATCH_KAFKA[A-Z_]*)` \|[^|]*\| (.*) \|$", PAGE, re.MULTILINE))
    assert told == dict(BROKER_VARIABLES)


@pytest.mark.parametrize("name", ["create", "check"])
def test_every_option_is_told_and_has_help(name: str) -> None:
    command = topics.commands[name]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    told = re.findall(r"^\| `(--[a-z]+)", PAGE, re.MULTILINE)
    assert [option.opts[0] for option in options] == told
    assert all(option.help for option in options)
    assert f"## ettwatch topics {name}\n" in PAGE
