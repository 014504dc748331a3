"""The alerts: read and unit-tested by promtool, routed by amtool, each with a section in docs/oncall.md."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = PROMETHEUS / "rules" / "ettwatch.yml"
TESTS = PROMETHEUS / "rules" / "tests.yml"
ALERTMANAGER = ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
ONCALL = ROOT / "docs" / "oncall.md"


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}


def test_prometheus_takes_its_settings_and_rules(promtool: Any) -> None:
    done = promtool("check", "config", "prometheus.yml", cwd=PROMETHEUS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules())} rules found" in done.stdout


def test_the_unit_tests_of_the_alerts_pass(promtool: Any) -> None:
    done = promtool("test", "rules", "tests.yml", cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_expectation_would_be_seen(promtool: Any, tmp_path: Path) -> None:
    wrong = TESTS.read_text(encoding="utf-8").replace("40k messages wait", "41k messages wait")
    (tmp_path / "tests.yml").write_text(wrong, encoding="utf-8")
    (tmp_path / RULES.name).write_bytes(RULES.read_bytes())
    done = promtool("test", "rules", "tests.yml", cwd=tmp_path)
    assert done.returncode != 0
    assert "40k messages wait" in done.stdout + done.stderr


def test_every_alert_is_shown_firing_and_keeping_quiet() -> None:
    cases = [
        case for test in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"] for case in test["alert_rule_test"]
    ]
    fires = {case["alertname"] for case in cases if case.get("exp_alerts")}
    quiet = {case["alertname"] for case in cases if not case.get("exp_alerts")}
    assert fires == set(ALERTS)
    assert quiet == set(ALERTS) - {"EttwatchWatchdog"}


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_to_do(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in ("page", "ticket", "none")
    assert alert["annotations"]["summary"].endswith((".", "%"))
    assert alert["annotations"]["runbook"] == f"docs/oncall.md#{name.lower()}"
    section = re.search(rf"^### {name}\n(.+?)(?=^##)", ONCALL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert section, f"docs/oncall.md has no section {name}"
    assert len(section[1].split()) >= 20, f"docs/oncall.md says too little of {name}"


def test_the_document_tells_of_no_other_alert() -> None:
    assert set(re.findall(r"^### (Ettwatch\w+)$", ONCALL.read_text(encoding="utf-8"), re.MULTILINE)) == set(ALERTS)


def test_alertmanager_takes_its_settings(amtool: Any) -> None:
    done = amtool("check-config", ALERTMANAGER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 receivers" in done.stdout


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_reaches_whom_it_concerns(amtool: Any, name: str) -> None:
    severity = ALERTS[name]["labels"]["severity"]
    done = amtool(
        "config", "routes", "test", f"--config.file={ALERTMANAGER}", f"alertname={name}", f"severity={severity}"
    )
    assert done.stdout.split() == [{"none": "nobody"}.get(severity, severity)], done.stderr


@pytest.mark.parametrize("severity", ["info", "warning", "critical"])
def test_a_regression_wakes_nobody_and_reaches_whom_it_concerns(amtool: Any, severity: str) -> None:
    labels = ["alertname=EttwatchRegression", f"severity={severity}", "owner=storage"]
    done = amtool("config", "routes", "test", f"--config.file={ALERTMANAGER}", *labels)
    assert done.stdout.split() == ["regression"], done.stderr


def test_inhibitions_name_alerts_that_there_are() -> None:
    inhibit = yaml.safe_load(ALERTMANAGER.read_text(encoding="utf-8"))["inhibit_rules"]
    for matcher in [text for rule in inhibit for side in ("source_matchers", "target_matchers") for text in rule[side]]:
        pattern = re.fullmatch(r'alertname =~? "(.+)"', matcher)
        assert pattern
        assert any(re.fullmatch(pattern[1], name) for name in ALERTS), f"{matcher} matches no alert"


def test_no_address_of_a_receiver_is_in_the_file() -> None:
    text = ALERTMANAGER.read_text(encoding="utf-8")
    assert not re.search(r"https?://", text)
    assert not re.search(r"^\s*(- )?(url|api_url|routing_key|service_key|auth_password):", text, re.MULTILINE)


def test_the_chart_has_the_same_rules(render: Any, promtool: Any, tmp_path: Path) -> None:
    (rule,) = [each for each in render("secured") if each["kind"] == "PrometheusRule"]
    assert rule["spec"] == yaml.safe_load(RULES.read_text(encoding="utf-8"))
    (tmp_path / "rules.yml").write_text(json.dumps(rule["spec"]), encoding="utf-8")
    assert promtool("check", "rules", "rules.yml", cwd=tmp_path).returncode == 0
