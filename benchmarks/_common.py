"""Results of a benchmark: printed, and written beside machine, date and command."""

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """Return what the figures were taken on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()}


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value)


def save(name: str, results: dict[str, Any], limits: dict[str, bool] | None = None) -> None:
    """Print the figures and write benchmarks/results/NAME.json."""
    body = {
        "name": name,
        "version": version("ettwatch"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "results": results,
        "limits": limits or {},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(body, indent=2) + "\n")
    for group, figures in results.items():
        print(f"\n{group}")
        rows = figures.items() if isinstance(figures, dict) else [("", figures)]
        for key, value in rows:
            print(f"  {key:<32}{_shown(value):>18}")
    if limits:
        print("\nlimits")
        for text, held in limits.items():
            print(f"  {text:<42}{'held' if held else 'MISSED':>8}")
    print(f"\nwritten to benchmarks/results/{name}.json")
