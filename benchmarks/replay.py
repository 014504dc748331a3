"""Replay of five million events of interleaved jobs: time and peak memory, beside ``json.loads`` of the same lines.

Writes benchmarks/results/replay.json. Run: python benchmarks/replay.py [--events 5000000]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from _common import save
from core import job_lines

JOBS = 10_000
PATTERNS = 50


def write(path: Path, events: int, rng: Random) -> tuple[int, int]:
    """Write events of 10,000 jobs, one of each in turn; jobs follow 50 patterns. Returns lines and jobs."""
    reports = max(1, events // JOBS - 30)
    patterns = [job_lines(f"pattern-{i:05}", rng, reports=reports, every_s=15) for i in range(PATTERNS)]
    names = [(b"pattern-%05d" % (j % PATTERNS), b"benchjob-%05d" % j, patterns[j % PATTERNS]) for j in range(JOBS)]
    lines = 0
    with path.open("wb", buffering=1 << 20) as out:
        for turn in range(max(map(len, patterns))):
            for old, new, rows in names:
                if turn < len(rows):
                    out.write(rows[turn].replace(old, new) + b"\n")
                    lines += 1
            if lines >= events:
                break
    return lines, JOBS


def replayed(path: Path, *options: str) -> tuple[float, int, int]:
    """Run ``ettwatch replay`` on its own; return seconds, peak memory (MiB) and summaries."""
    command = [sys.executable, "-c", "from ettwatch.cli import main; main()", "replay", str(path), *options]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        rows = sum(1 for _ in process.stdout)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"replay ended with exit code {process.returncode}")
    return time.perf_counter() - begin, usage.ru_maxrss // (1024 if sys.platform == "linux" else 1024**2), rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        print(f"writing {options.events} events ...", flush=True)
        lines, jobs = write(path, options.events, Random(1))
        print("json.loads of every line ...", flush=True)
        begin = time.perf_counter()
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
        loads = time.perf_counter() - begin
        figures: dict[str, dict[str, float]] = {
            "input": {"events": lines, "jobs": jobs, "bytes": path.stat().st_size, "json_loads_s": loads}
        }
        for name, extra in (("replay", []), ("replay_lateness_6h", ["--lateness", "6h"])):
            print(f"ettwatch replay {' '.join(extra)} ...", flush=True)
            seconds, peak, rows = replayed(path, *extra)
            if rows != jobs:
                raise SystemExit(f"{rows} summaries for {jobs} jobs")
            figures[name] = {
                "seconds": seconds,
                "events_per_s": lines / seconds,
                "ratio_to_json_loads": seconds / loads,
                "peak_memory_mib": peak,
            }
    save("replay", figures, {"peak memory below that of the file": figures["replay"]["peak_memory_mib"] < 500})


if __name__ == "__main__":
    main()
