"""What is installed."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from ettwatch_app.doctor.finding import Finding, Level

EXTRAS = {
    "cli": (("rich", "pyyaml", "zstandard"), "replay, report, sql, doctor"),
    "sinks": (("clickhouse-connect", "chdb"), "up, report, sql, rebuild, demo"),
    "server": (("clickhouse-connect", "prometheus-client"), "sink, migrate and queries on a ClickHouse server"),
    "streams": (("faust-streaming", "rocksdict"), "worker, windows: the stream processor on Kafka"),
    "monitor": (("scipy", "fastapi", "uvicorn", "pyarrow"), "monitor, the page of up, advise, top, alerts, windows"),
    "sources": (("urllib3",), "watch and export over HTTP"),
    "otlp": (("opentelemetry-proto",), "export to OTLP receivers that take no JSON"),
    "trainer": (("torch", "numpy", "fsspec"), "the full demo, the reference trainer and its remedies"),
    "plots": (("matplotlib",), "pictures of bench-remedies"),
}
_NEEDED = ("cli", "sinks")


def check_installed() -> Iterator[Finding]:
    """Look for the package and its extras by their metadata: nothing is imported."""
    yield Finding("installed", "ok", f"ettwatch {_version('ettwatch') or 'from source'}, {_python()}")
    for extra, (packages, use) in EXTRAS.items():
        found = {name: _version(name) for name in packages}
        missing = [name for name, number in found.items() if number is None]
        if not missing:
            there = ", ".join(f"{name} {number}" for name, number in found.items())
            yield Finding("installed", "ok", f"extra {extra}: {there}")
            continue
        level: Level = "warn" if extra in _NEEDED else "ok"
        yield Finding(
            "installed",
            level,
            f"extra {extra} is not complete, {', '.join(missing)} missing; it is for: {use}",
            f"pip install 'ettwatch[{extra}]' if you want that",
        )


def _python() -> str:
    return f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
