"""docs/simulator.md tells of everything that is there, and its examples work."""

import re
from statistics import fmean, median

import pytest
from pydantic import BaseModel

from ettwatch_app.commands.simulate import simulate
from ettwatch_sim import JobDone
from ettwatch_sim.life import (
    PROFILES,
    REMEDIES,
    Cluster,
    Injection,
    Maintenance,
    Model,
    Scenario,
    Team,
    Travel,
    alone,
    parse_scenario,
    summaries,
)
from house.tree import ROOT

PAGE = (ROOT / "docs" / "simulator.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("part", [Scenario, Cluster, Team, Model, Injection, Maintenance, Travel])
def test_every_field(part: type[BaseModel]) -> None:
    name = {"Model": "model"}.get(part.__name__, part.__name__.lower())
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {name} | `"))
    told = set(re.findall(r"`(\w+)`", row))
    assert told - {"like"} == set(part.model_fields)


def test_every_option_remedy_and_model() -> None:
    options = {name for parameter in simulate.params for name in parameter.opts}
    for word in (*options, *REMEDIES, *PROFILES):
        assert f"`{word}" in PAGE, word


def test_the_example_of_a_scenario() -> None:
    scenario = parse_scenario(block("yaml"))
    assert (len(scenario.teams), len(scenario.injections)) == (2, 2)


def test_the_example_in_python() -> None:
    names: dict[str, object] = {}
    exec(block("python").replace("91.0", "3.0"), names)
    starts = names["starts"]
    assert isinstance(starts, list)
    assert starts


@pytest.mark.parametrize("name", ["ctr-small", "foundation"])
def test_the_table_of_models(name: str) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{name}` | {PROFILES[name].gpus} |"))
    figures = [int(figure) for figure in re.findall(r"(\d+) → (\d+)", row) for figure in figure]
    for at, remedies in enumerate(((), REMEDIES)):
        done = [f for f in summaries(1, alone(name, remedies).but(days=40.0)) if isinstance(f, JobDone)]
        ett = 100 * sum(f.gpu_effective_s for f in done) / sum(f.gpu_e2e_s for f in done)
        tts = median(f.tts_s for f in done if f.tts_s) / 60
        ttr = fmean(t for f in done for t in f.ttr_s) / 60
        assert [round(x) for x in (ett, tts, ttr)] == figures[at::2]
