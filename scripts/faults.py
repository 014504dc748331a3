"""Runs the whole pipeline under each fault with 2,000 random jobs, and compares every row with what `replay` gives.

Writes benchmarks/results/faults.json. Run: python scripts/faults.py [--jobs 2000] [--only worker_killed ...]
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from _common import save  # noqa: E402
from support.kafka import Cluster  # noqa: E402
from support.pipeline_faults import FAULTS  # noqa: E402
from support.pipeline_runs import Size, report, run_fault  # noqa: E402


def main() -> None:
    """Run them, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=60, help="for which each feed is sent")
    parser.add_argument("--rounds", type=int, default=4, help="how often a fault happens in a run")
    parser.add_argument("--pause", type=float, default=10, help="seconds for which what is down stays down")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=[fault.name for fault in FAULTS])
    options = parser.parse_args()
    size = Size(options.jobs, options.seconds, options.rounds, options.pause, drain_s=900)
    told: dict[str, Any] = {}
    limits: dict[str, bool] = {}
    for number, fault in enumerate(FAULTS):
        if options.only and fault.name not in options.only:
            continue
        print(f"{fault.name}: {fault.what} ...", flush=True)
        with tempfile.TemporaryDirectory() as folder, Cluster(fault.brokers) as cluster:
            run = run_fault(fault, cluster, Path(folder), f"faults-{fault.name}", size, options.seed * 1_000 + number)
        told[fault.name] = report(run)
        limits[f"{fault.name}: no difference"] = not run.comparison.differences
        print(f"  {told[fault.name]}", flush=True)
    save("faults", told, limits)
    if not all(limits.values()):
        raise SystemExit("faults: some runs differ")


if __name__ == "__main__":
    main()
