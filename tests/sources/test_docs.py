"""The pages about sources say what the code does."""

import re
from pathlib import Path

import click
import pytest
import yaml

from ettwatch_app.commands.export import export
from ettwatch_app.commands.import_ import import_
from ettwatch_app.commands.watch import watch
from ettwatch_app.goodput import goodput
from ettwatch_sources import FLAGS, KIND_NAMES, parse_mapping
from ettwatch_sources.kubernetes.resources import WATCHED, resources
from ettwatch_sources.kubernetes.words import TABLES
from ettwatch_sources.ray.words import ERRORS, STATUSES
from ettwatch_sources.slurm.words import REASONS, SHORT, STATES, reason_of

DOCS = Path(__file__).parent.parent.parent / "docs"


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text("utf-8")


def table(name: str, heading: str) -> dict[str, list[str]]:
    """The rows under a heading: the first cell, without its quotes, to the others."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", page(name), re.MULTILINE | re.DOTALL)
    assert found, f"docs/{name}.md has no heading {heading!r}"
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in found[1].splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[1:] for cells in rows}


def test_slurms_states() -> None:
    told = table("scheduler-words", "Slurm: states")
    assert set(told) == set(STATES)
    for name, state in STATES.items():
        shorts = [f"`{short}`" for short, long in SHORT.items() if long == name]
        wanted = [", ".join(shorts) or "-", state.outcome or "-", state.cause if state.outcome else "-"]
        assert told[name] == [*wanted, "yes" if state.again else "no", state.means]


def test_slurms_reasons() -> None:
    told = table("scheduler-words", "Slurm: reasons")
    assert set(told) == set(REASONS)
    for name, (waits, cause) in told.items():
        reason = reason_of(name)
        assert reason is not None
        assert (waits, cause) == (reason.waits or "-", reason.cause or "-")


@pytest.mark.parametrize("title", sorted(TABLES))
def test_kubernetes_words(title: str) -> None:
    told = table("scheduler-words", title[0].upper() + title[1:])
    assert told == {name: [word.outcome or "-", word.cause, word.means] for name, word in TABLES[title].items()}


def test_rays_words() -> None:
    assert table("scheduler-words", "Ray: status of a job") == {
        name: [outcome or "-", means] for name, (outcome, means) in STATUSES.items()
    }
    assert table("scheduler-words", "Ray: type of an error") == {name: list(told) for name, told in ERRORS.items()}


def test_kinds_and_flags() -> None:
    kinds = table("importers", "Kinds")
    assert set(kinds) == set(KIND_NAMES)
    for name, (title, unknown) in kinds.items():
        assert title == KIND_NAMES[name].title
        assert re.findall(r"`(\w+)`", unknown) == list(KIND_NAMES[name].unknown)
    assert table("importers", "Flags") == {code: [means] for code, means in FLAGS.items()}
    notes = page("importers").split("## Notes on each kind")[1]
    assert all(f"**{name}**" in notes for name in KIND_NAMES if name != "mapped")


def test_the_example_of_a_mapping_is_one() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", page("importers"), re.DOTALL)
    assert len(parse_mapping(yaml.safe_load(example)).rules) == 4


@pytest.mark.parametrize(("command", "name"), [(import_, "importers"), (watch, "sources"), (export, "export")])
def test_every_option_is_documented(command: click.Command, name: str) -> None:
    commands = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    text = page(name)
    for one in commands:
        assert one.help
        for parameter in one.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{one.name} {parameter.opts[0]} has no help"
                assert re.search(rf"`{parameter.opts[0]}\b", text), f"docs/{name}.md has no {parameter.opts[0]}"
    if isinstance(command, click.Group):
        assert all(f"ettwatch {command.name} {one.name}" in text for one in commands)
    known = {opt for one in commands for p in one.params for opt in p.opts}
    shown = {
        option for line in text.splitlines() if line.startswith("| `--") for option in re.findall(r"`(--[a-z-]+)", line)
    }
    assert shown <= known, f"docs/{name}.md tells of {sorted(shown - known)}"


def test_the_rights_cover_what_is_watched_and_nothing_else() -> None:
    (role, *_) = yaml.safe_load_all(re.findall(r"```yaml\n(.*?)```", page("sources"), re.DOTALL)[0])
    granted = {
        (group, resource) for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
    }
    asked = set()
    for resource in resources(WATCHED, None):
        parts = resource.path.strip("/").split("/")
        asked.add(("" if parts[0] == "api" else parts[1], parts[-1]))
    assert granted == asked
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_goodputs_badput_is_in_its_table() -> None:
    from support.story import Story

    shot = Story().submitted(0).started(0).at(10)
    names = set(goodput(shot.summary, shot.attempts, shot.segments, []).badput_s) | {"infrastructure_recovery"}
    told = set(re.findall(r"^\| `[A-Z_]+` \| `(\w+)`", page("goodput"), re.MULTILINE))
    assert names == told
