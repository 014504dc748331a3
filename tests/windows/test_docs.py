"""docs/windows.md tells of every option, figure and column, as they are."""

import re
from importlib.resources import files
from pathlib import Path

import click
from prometheus_client import Counter, ProcessCollector

from ettwatch_app.commands.windows import windows
from ettwatch_clickhouse.windows import WINDOWS
from ettwatch_faust.windows.metrics import WindowsMetrics
from ettwatch_faust.windows.settings import WINDOWS_SETTINGS
from ettwatch_schemas import Window

PAGE = (Path(__file__).parents[2] / "docs" / "windows.md").read_text("utf-8")


def test_every_setting_is_told() -> None:
    for setting in WINDOWS_SETTINGS:
        default = f"`{setting.default}`" if setting.default else ""
        assert f"| `{setting.option}` | `{setting.variable}` | {default} | {setting.meaning} |" in PAGE


def test_every_option_is_told_and_has_help() -> None:
    options = [parameter for parameter in windows.params if isinstance(parameter, click.Option)]
    told = re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE)
    assert [option.opts[0] for option in options] == told
    assert all(option.help for option in options)


def test_every_figure_is_told() -> None:
    rows = []
    for metric in WindowsMetrics().registry._collector_to_names:
        if not isinstance(metric, ProcessCollector):
            name = metric._name + ("_total" if isinstance(metric, Counter) else "")  # type: ignore[attr-defined]
            labels = ", ".join(metric._labelnames)  # type: ignore[attr-defined]
            told = name + (f"{{{labels}}}" if labels else "")
            rows.append(f"| `{told}` | {metric._documentation} |")  # type: ignore[attr-defined]
    assert re.findall(r"^\| `ettwatch_windows_.*$", PAGE, re.MULTILINE) == rows


def test_every_column_is_told_and_is_a_field() -> None:
    told = re.findall(r"^\| `(\w+)` \| `[A-Z]", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(set(Window.model_fields) - {"v"}) == sorted(set(WINDOWS) - {"written"})
    sql = (files("ettwatch_clickhouse") / "migrations" / "0008_windows.sql").read_text()
    for row in re.findall(r"^\| `(\w+)` \| `([A-Z][^`]*)` \| (.*) \|$", PAGE, re.MULTILINE):
        assert "{} {} COMMENT '{}'".format(*row) in sql
