"""`python -m ettwatch_trainer.record OUT.jsonl`: run the demo job once for real and keep its events.

The events come out one a line, in the order in which they were written, whoever wrote them. The name of the machine
is replaced: it says nothing about the run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ettwatch_trainer import launch
from ettwatch_trainer.config import demo

HOST = "demo-host"


def main(arguments: list[str] | None = None) -> int:
    """Record a run. Returns 0, or 2 if the job failed; then nothing is written."""
    parser = argparse.ArgumentParser(
        prog="python -m ettwatch_trainer.record", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("file", type=Path, help="the file to write, JSON Lines")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ettwatch-record-") as folder:
        spool = Path(folder) / "spool"
        argv, variables = launch.job_command(demo(Path(folder) / "job"))
        done = subprocess.run(argv, env={**os.environ, **variables, "ETTWATCH_SPOOL": str(spool)}, check=False)
        if done.returncode != 0:
            print(f"the demo job ended with exit code {done.returncode}; nothing is recorded", file=sys.stderr)
            return 2
        events = list(gather(path.read_text().splitlines() for path in spool.glob("*.jsonl")))
    given.file.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))
    print(f"{len(events)} events written to {given.file}")
    return 0


def gather(files: Iterable[list[str]]) -> Iterator[dict[str, Any]]:
    """The events of several spool files in order of writing.

    A line holds one event or an array of them, and is written when its newest event happens.
    """
    lines: list[tuple[int, list[dict[str, Any]]]] = []
    for file in files:
        for line in file:
            found = json.loads(line)
            events = found if isinstance(found, list) else [found]
            lines.append((max(event["ts"] for event in events), events))
    # Stable: lines of one file that were written in the same microsecond stay in order.
    for _, events in sorted(lines, key=lambda line: line[0]):
        for event in events:
            yield {**event, "host": HOST} if "host" in event else event


if __name__ == "__main__":
    sys.exit(main())
