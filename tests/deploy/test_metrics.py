"""Every metric that deploy/ and the document for who is on call speak of is one that workers or the sink have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
RULES = ROOT / "deploy" / "prometheus" / "rules" / "ettwatch.yml"
FILES = [path for path in (ROOT / "deploy").rglob("*") if path.is_file() and path.suffix in (".yml", ".yaml", ".json")]
METRIC = re.compile(r"\bettwatch_(?:worker|sink|windows|alerts)_\w+")
RECORDED = re.compile(r"\bettwatch:\w+:\w+")
GROUPING = re.compile(r"\b(?:by|on|without|ignoring) \(([^)]*)\)")
# What Prometheus itself puts on every sample, and what the recorded rules leave.
EVERYWHERE = {"instance", "job"}


def expressions() -> list[tuple[str, str]]:
    """Every PromQL that there is, with where it stands."""
    found = [
        (rule.get("alert") or rule["record"], rule["expr"])
        for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]
    for path in DASHBOARDS:
        panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
        found += [
            (f"{path.stem}: {panel['title']}", target["expr"])
            for panel in panels
            for target in panel.get("targets", ())
            if "expr" in target
        ]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "deploy")))
def test_every_metric_that_is_used_exists(path: Path, watched: dict[str, tuple[str, ...]]) -> None:
    text = path.read_text(encoding="utf-8")
    used = set(METRIC.findall(text))
    assert used <= set(watched), f"{path}: no such metric: {sorted(used - set(watched))}"


def test_the_metrics_are_found_at_all(registered: dict[str, tuple[str, ...]]) -> None:
    used = {name for _, expr in expressions() for name in METRIC.findall(expr)}
    assert len(used) > 25
    assert len(registered) > 30


@pytest.mark.parametrize(("where", "expr"), expressions(), ids=lambda value: value[:40])
def test_an_expression_groups_by_labels_that_there_are(
    where: str, expr: str, watched: dict[str, tuple[str, ...]]
) -> None:
    names = METRIC.findall(expr)
    known = EVERYWHERE | {label for name in names for label in watched[name]} | {"topic", "code"}
    for group in GROUPING.findall(expr):
        labels = {label.strip() for label in group.split(",") if label.strip()}
        assert labels <= known, f"{where}: {sorted(labels - known)} in {expr}"


def test_recorded_sums_that_are_used_exist() -> None:
    recorded = {name for name, _ in expressions() if name.startswith("ettwatch:")}
    used = {name for _, expr in expressions() for name in RECORDED.findall(expr)}
    assert used == recorded


def test_prometheus_reads_every_expression_of_the_dashboards(promtool: Any, tmp_path: Path) -> None:
    exprs = [expr.replace("$__rate_interval", "1m") for _, expr in expressions()]
    rules = [{"record": f"test:expression:{number}", "expr": expr} for number, expr in enumerate(exprs)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "test", "rules": rules}]}), encoding="utf-8")
    done = promtool("check", "rules", "rules.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(exprs)} rules found" in done.stdout


@pytest.mark.parametrize(("part", "page"), [("windows", "windows.md"), ("alerts", "alerts.md")])
def test_the_page_of_a_part_tells_of_its_metrics(part: str, page: str, watched: dict[str, tuple[str, ...]]) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    told = {name: labels or "" for name, labels in re.findall(rf"`(ettwatch_{part}_\w+)(?:\{{([\w,]+)\}})?`", text)}
    plain = {re.sub(r"_(bucket|sum|count)$", "", name) for name in watched if name.startswith(f"ettwatch_{part}_")}
    assert set(told) >= plain, f"docs/{page} does not tell of {sorted(plain - set(told))}"


def test_the_document_tells_the_meaning_of_every_metric(registered: dict[str, tuple[str, ...]]) -> None:
    text = (ROOT / "docs" / "oncall.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(ettwatch_\w+)(?:\{[\w, ]+\})?` \|[^|]*\| (.+?) \|", text, re.MULTILINE))
    plain = {re.sub(r"_(bucket|sum|count)$", "", name) for name in registered}
    assert set(rows) == plain, f"missing {sorted(plain - set(rows))}, unknown {sorted(set(rows) - plain)}"
    labels = dict(re.findall(r"^\| `(ettwatch_\w+)\{([\w, ]+)\}` \|", text, re.MULTILINE))
    for name in plain:
        told = tuple(label.strip() for label in labels.get(name, "").split(",") if label.strip())
        real = registered.get(name) or registered.get(f"{name}_sum") or ()
        assert told == real, f"docs/oncall.md: {name} has the labels {real}"
