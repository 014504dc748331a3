"""Changes in words and as objects, and what is wrong with some."""

import pytest

from ettwatch_monitor.advice import BY_NAME, AdviceError, Change, described, parse_body, parse_change


@pytest.mark.parametrize(
    ("told", "change"),
    [
        ("pt2_compilation x 0.3 team=ads", Change(stage="pt2_compilation", factor=0.3, team="ads")),
        ("pt2_compilation*0.3", Change(stage="pt2_compilation", factor=0.3)),
        (
            "hardware_setup.image_pull x 0 attempts=later cluster=eu",
            Change(stage="hardware_setup.image_pull", factor=0.0, attempts="later", cluster="eu"),
        ),
        ("save_interval = 10m", Change(save_interval_s=600.0)),
        ("save_interval = best model=m", Change(save_interval_s="best", model="m")),
        ("save_blocking x 0.2", Change(save_blocking=0.2)),
        ("detection = 60s", Change(detection_s=60.0)),
        ({"stage": "shutdown.model_publish", "factor": 0}, Change(stage="shutdown.model_publish", factor=0.0)),
        ({"save_interval_s": "best", "team": None}, Change(save_interval_s="best")),
        ({"detection_s": 5, "team": "a"}, Change(detection_s=5.0, team="a")),
    ],
)
def test_what_is_right_is_read(told: object, change: Change) -> None:
    assert parse_change(told) == (change,)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_remedy_is_its_changes(name: str) -> None:
    found = parse_change({"remedy": name, "team": "ads"})
    assert [change.team for change in found] == ["ads"] * len(BY_NAME[name].changes)
    assert all(described(change) for change in found)


@pytest.mark.parametrize(
    "told",
    [
        "",
        "pt2_compilation",
        "pt3 x 2",
        "pt2_compilation x nan",
        "pt2_compilation x -1",
        "pt2_compilation x 1e9",
        "wasted_training.rework x 0.5",
        "wasted_training x 0.5",
        "effective_training x 2",
        "save_interval = 0s",
        "save_blocking x 2",
        "detection = soon",
        "remedy = magic",
        "detection = 5s attempts=later",
        "pt2_compilation x 1 attempts=most",
        None,
        7,
        {},
        {"stage": 5, "factor": 1},
        {"stage": "shutdown", "factor": True},
        {"stage": "shutdown", "factor": [1]},
        {"stage": "shutdown", "factor": 1, "detection_s": 3},
        {"remedy": ["magic"]},
        {"detection_s": 1, "team": 5},
        {"stage": "x" * 100_000, "factor": 1},
    ],
)
def test_what_is_wrong_is_told_in_one_short_line(told: object) -> None:
    with pytest.raises(AdviceError) as caught:
        parse_change(told)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "body", [None, [], {}, {"changes": []}, {"changes": "x"}, {"changes": ["detection = 5s"] * 21}, {"change": []}]
)
def test_a_wrong_body_is_told(body: object) -> None:
    with pytest.raises(AdviceError):
        parse_body(body)
