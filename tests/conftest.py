"""What holds for every test: a clean environment, bounded property tests, and no test left out unseen."""

import os
import re
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Reasons for which a test may be skipped under --no-skips: what a whole machine of some kind cannot have.
ALLOWED_SKIPS = re.compile(r"needs (macOS|Docker|Go|apt-get|systemd|a GPU|a user other than root)\b")

# Named here and not imported where they are used, so that a test process starts one of each, whatever it runs.
pytest_plugins = ["support.brokers"]

# A shell that has run a job, or runs under Slurm or torchrun, must not change what a test sees.
FOREIGN = re.compile(r"ETTWATCH_(?!TEST_)|SLURM_|TORCHELASTIC_|(LOCAL_|GROUP_)?(RANK|WORLD_SIZE)$|MASTER_(ADDR|PORT)$")
for name in [name for name in os.environ if FOREIGN.match(name)]:
    del os.environ[name]

# A shell that starts the tests in the background has these ignored, and so would all that the tests start.
for number, default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)

# How wide and how colourful output is belongs to the shell that runs the tests, and some libraries set it too.
SCREEN = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM")


@pytest.fixture(autouse=True)
def plain_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in SCREEN:
        monkeypatch.delenv(variable, raising=False)


settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=5_000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("ci")  # --hypothesis-profile overrules it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test fails, few reasons excepted")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: takes minutes; run by `make soak` only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "soak" in config.getoption("markexpr"):
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    if soak:
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def refuse_skip(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip into a failure under --no-skips, unless its reason is one of the allowed."""
    if not config.getoption("no_skips") or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if not ALLOWED_SKIPS.search(reason):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} skipped itself, but --no-skips allows that for few reasons only: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_skip(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_skip(collector.config, report)
    return report
