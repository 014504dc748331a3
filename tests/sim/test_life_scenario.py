"""Scenarios from YAML: what they may say, and what is said of those that are wrong."""

from pathlib import Path

import pytest
import yaml

from ettwatch_sim.life import (
    PRESETS,
    PROFILES,
    REMEDIES,
    Scenario,
    ScenarioError,
    load_scenario,
    parse_scenario,
    preset,
)

GOOD = """
days: 3
begin: 2026-03-02
clusters:
  - {name: east, gpus: 512}
models:
  - {name: mine, like: ctr-small, gpus: 16, publish_s: 60}
teams:
  - {name: ads, models: [mine, retrieval], jobs_per_day: 4, remedies: [overlap]}
remedies: all
injections:
  - {name: slow, what: stage, stage: trainer_init, factor: 1.5, from_day: 1, team: ads}
maintenance:
  - {cluster: east, day: 2}
travel: {late: 0.1, late_s: 60}
"""


def test_a_scenario() -> None:
    scenario = parse_scenario(GOOD)
    assert scenario.begin == 1_772_409_600_000_000
    assert scenario.remedies == REMEDIES
    assert scenario.teams[0].remedies == ("overlap",)
    mine = scenario.model("mine")
    assert (mine.gpus, mine.publish_s, mine.work_h) == (16, 60, PROFILES["ctr-small"].work_h)
    assert scenario.injections[0].factor == 1.5


def test_a_scenario_survives_the_way_through_yaml() -> None:
    for name in PRESETS:
        told = preset(name).model_dump(mode="json")
        assert parse_scenario(yaml.safe_dump(told)) == preset(name)


@pytest.mark.parametrize("begin", ["2026-03-02T00:00:00Z", "2026-03-02T01:00:00+01:00", "1772409600000000"])
def test_times(begin: str) -> None:
    assert parse_scenario(GOOD.replace("2026-03-02", begin)).begin == 1_772_409_600_000_000


BAD = {
    "is no YAML": ("days: 3", "days: ["),
    "is no scenario: write fields": (GOOD, "- 1"),
    "dayz: there is no such field; write days": ("days: 3", "dayz: 3"),
    "clusters: is missing; give it": ("clusters:\n  - {name: east, gpus: 512}\n", ""),
    "days: -1 does not fit; input should be greater than 0": ("days: 3", "days: -1"),
    "days: 'many' does not fit; input should be a valid number": ("days: 3", "days: many"),
    "days: True does not fit": ("days: 3", "days: yes"),
    "begin: 'soon' is no time; write 2026-01-05": ("2026-03-02", "soon"),
    "clusters[0].gpus: 500 does not fit; input should be a multiple of 8": ("gpus: 512", "gpus: 500"),
    "teams[0].gpus: there is no such field; the fields are": ("jobs_per_day: 4", "gpus: 4"),
    "teams[0].job_per_day: there is no such field; write jobs_per_day": ("jobs_per_day", "job_per_day"),
    "teams[0].models: minus is not known; write one of": ("[mine, retrieval]", "[minus]"),
    "teams[0].models: foundation needs 256 GPUs and no cluster of the team has more than 64": (
        "gpus: 512}\nmodels",
        "gpus: 64}\nmodels",
    ),
    "teams[0].remedies[0]: 'overlaps' is none of": ("[overlap]", "[overlaps]"),
    "remedies: 'some' is no list of remedies; write all, none": ("remedies: all", "remedies: some"),
    "models[0].like: 'ctr' is no profile; write one of": ("like: ctr-small", "like: ctr"),
    "injections[0].what: 'stages' is none of": ("what: stage", "what: stages"),
    "injections[0]: stage 'scheduling' has no time of its own": ("stage: trainer_init", "stage: scheduling"),
    "injections[0]: to_day 0.5 is not after from_day 1": ("from_day: 1", "from_day: 1, to_day: 0.5"),
    "injections[0].team: adds is not known; write one of ads": ("team: ads", "team: adds"),
    "maintenance[0].cluster: west is not known; write one of east": ("{cluster: east", "{cluster: west"),
    "travel.late: 10 does not fit; input should be less than or equal to 1": ("late: 0.1", "late: 10"),
    "travel.late: nan does not fit; input should be a finite number": ("late: 0.1", "late: .nan"),
    "teams[1].name: ads is there twice": ("remedies: all", "  - {name: ads, models: [mine]}\nremedies: all"),
}


@pytest.mark.parametrize("said", BAD)
def test_what_is_wrong_is_named_with_its_field(said: str) -> None:
    old, new = BAD[said]
    text = GOOD.replace(old, new)
    assert text != GOOD
    if "foundation" in said:
        text = text.replace("retrieval", "foundation")
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text)
    assert any(said in problem for problem in caught.value.problems), caught.value.problems


def test_all_problems_at_once() -> None:
    text = GOOD.replace("days: 3", "days: -3").replace("gpus: 512", "gpus: 3").replace("[mine, ", "[Mine!, ")
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text)
    assert len(caught.value.problems) == 3


def test_files(tmp_path: Path) -> None:
    good, bad, binary, large = (tmp_path / name for name in ("good", "bad", "binary", "large"))
    good.write_text(GOOD)
    assert load_scenario(good) == parse_scenario(GOOD)
    bad.write_text("days: 1")
    binary.write_bytes(b"\xff\xfe")
    large.write_bytes(b"#" * 2_000_000)
    for path, said in (
        (bad, "clusters: is missing"),
        (binary, "is no text in UTF-8"),
        (large, "a scenario is a short"),
    ):
        with pytest.raises(ScenarioError, match=said) as caught:
            load_scenario(path)
        assert all(problem.startswith(f"{path}: ") for problem in caught.value.problems)


def test_other_fields_are_checked() -> None:
    assert preset("fleet").but(days=2.0).days == 2
    with pytest.raises(ScenarioError, match="days: -2"):
        preset("fleet").but(days=-2.0)
    assert isinstance(preset("fleet"), Scenario)
