from pathlib import Path

import pytest

from ettwatch_monitor.alerts.watch import Rules, RulesError, Threshold, Window, load_rules, parse_rules

GOOD = """\
version: 1
zone: Europe/Berlin
every: 5m
scopes: [team, fleet]
detect: {fdr: 0.05, least_after: 10, dependence: any, causes_out: [maintenance, capacity]}
metrics:
  tts: {least_ratio: 1.2, weight: 2}
  share.shutdown: off
thresholds:
  slow starts: {metric: tts, figure: p90, window: 12h, above: 1800, back: 1500, for: 2h, match: {team: ads}}
  failing: {metric: nof, above: 5}
maintenance:
  - {from: 2026-03-01T22:00:00Z, until: 2026-03-02T04:00:00Z, cluster: c1, reason: new switches}
silences:
  - {match: 'team="ads"', until: 2030-01-01T00:00:00Z}
"""


def test_a_file_says_what_is_watched() -> None:
    rules = parse_rules(GOOD, "rules.yaml", {})
    assert rules.detect.zone == "Europe/Berlin"
    assert rules.every_s == 300
    assert rules.scopes == ("team", "fleet")
    assert (rules.detect.fdr, rules.detect.least_after, rules.detect.dependence) == (0.05, 10, "any")
    assert rules.detect.causes_out == {"maintenance", "capacity"}
    assert (rules.detect.least_ratio["tts"], rules.detect.weights["tts"]) == (1.2, 2.0)
    assert rules.detect.off == {"share.shutdown"}
    hour = 3_600_000_000
    assert rules.thresholds == (
        Threshold("slow starts", "tts", "p90", 12 * hour, 1800, True, 1500, 2 * hour, 1, (("team", "ads"),)),
        Threshold("failing", "nof", "rate", 24 * hour, 5),
    )
    assert rules.windows[0].reason == "new switches"
    assert rules.windows[0].of("any", "any", "c1")
    assert not rules.windows[0].of("any", "any", "c2")
    assert len(rules.delivery.silences) == 1


@pytest.mark.parametrize("text", ["", "# nothing\n", "version: 1\n"])
def test_defaults_need_no_rules(text: str) -> None:
    assert parse_rules(text, "rules.yaml", {}) == Rules()


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("zone: UTC\n", 1, "no version"),
        ("version: 2\n", 1, "version must be 1"),
        ("version: 1\nzone: Mars\n", 2, "there is no time zone 'Mars'"),
        ("version: 1\nmetric: {}\n", 2, "did you mean 'metrics'"),
        ("version: 1\nmetrics:\n  share.shutdwn: off\n", 3, "did you mean 'share.shutdown'"),
        ("version: 1\nmetrics:\n  tts: on\n", 3, "must be off"),
        ("version: 1\nmetrics:\n  tts: {least_ratio: 0.9}\n", 3, "from 1 to 100"),
        ("version: 1\ndetect:\n  fdr: 2\n", 3, "from 1e-06 to 0.5"),
        ("version: 1\ndetect:\n  fdr: nan\n", 3, "must be a number"),
        ("version: 1\ndetect:\n  least_after: 1.5\n", 3, "whole number"),
        ("version: 1\ndetect:\n  dependence: none\n", 3, "positive or any"),
        ("version: 1\nscopes: [teams]\n", 2, "did you mean 'team'"),
        ("version: 1\nevery: 1s\n", 2, "between 10s and a day"),
        ("version: 1\nthresholds:\n  x: {metric: tts}\n", 3, "one of above and below"),
        ("version: 1\nthresholds:\n  x: {metric: tts, above: 1, below: 2}\n", 3, "one of above and below"),
        ("version: 1\nthresholds:\n  x: {above: 1}\n", 3, "metric is missing"),
        ("version: 1\nthresholds:\n  x: {metric: nof, figure: p90, above: 1}\n", 3, "must be rate or count"),
        ("version: 1\nthresholds:\n  x: {metric: tts, above: 1, back: 2}\n", 3, "would flap"),
        ("version: 1\nthresholds:\n  x: {metric: tts, above: 1}\n  x: {metric: tts, above: 2}\n", 4, "twice"),
        ("version: 1\nmaintenance:\n  - {from: 2026-03-01T22:00:00Z}\n", 3, "until is missing"),
        ("version: 1\nmaintenance:\n  - {from: 2026-03-02T00:00:00Z, until: 2026-03-01T00:00:00Z}\n", 3, "ends before"),
        ("version: 1\nmaintenance: {from: x}\n", 2, "must be a list"),
        ("version: 1\nchannels:\n  x: {type: pager}\n", 3, "unknown type"),
        ("[1, 2\n", 2, "not YAML"),
        ("- a\n", 1, "must be a mapping"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(RulesError) as caught:
        parse_rules(text, "rules.yaml", {})
    told = str(caught.value).splitlines()
    assert any(one.startswith(f"rules.yaml:{line}: ") and reason in one for one in told), told


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(RulesError) as caught:
        parse_rules("zone: Mars\nevery: soon\nmetrics: {x: off}\n", "rules.yaml", {})
    assert len(str(caught.value).splitlines()) == 4


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_bytes(b"version: 1\nzone: \xff\n")
    with pytest.raises(RulesError, match=r"rules.yaml:2: not UTF-8"):
        load_rules(tmp_path / "rules.yaml")


def test_a_window_counts_what_overlaps() -> None:
    window = Window(10, 20)
    assert [window.overlap(*span) for span in ((0, 5), (5, 12), (12, 15), (0, 99))] == [0, 2, 3, 10]
