"""`ettwatch up` with small batches, and a look at what it left; the tests run it in processes of their own.

child.py up DATA SPOOL [--once] [--die-before TABLE]    until it is killed, or everything is read
child.py rows DATA                                      everything published, as JSON
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from ettwatch_app import datafolder
from ettwatch_app.up import Limits, UpSettings, run_up
from ettwatch_clickhouse import EmbeddedStore

# Small enough that some thousand events take many rounds, each of which ends with a commit, however long one takes.
LIMITS = Limits(
    poll_s=0.02,
    commit_s=0.0,
    busy_share=float("inf"),
    batch_events=150,
    chunk_bytes=16 * 1024,
    quiet_s=0.5,
    settle_s=0.0,
    retry_s=(0.1, 0.5),
)
# What tells when a row was written, and not what of.
NOT_COMPARED = ("version", "as_of", "published", "final")


def up(data: Path, spool: Path, once: bool) -> int:
    settings = UpSettings(data, (spool,), None, interval_us=200_000, log_format="json", once=once, limits=LIMITS)
    return run_up(settings)


def die_before(table: str) -> None:
    """Let the process kill itself where it would write into that table for the first time."""
    insert = EmbeddedStore.insert

    def dying(store: EmbeddedStore, into: str, *told: Any, **more: Any) -> None:
        if into == table:
            os.kill(os.getpid(), signal.SIGKILL)
        insert(store, into, *told, **more)

    EmbeddedStore.insert = dying  # type: ignore[assignment,method-assign]


def rows(data: Path) -> dict[str, object]:
    with datafolder.open_store(datafolder.DataFolder(data)) as store:
        told: dict[str, object] = {"events": store.query("SELECT count(), uniqExact(job, id) FROM events").rows}
        for view in ("jobs", "attempts", "segments", "phases"):
            table = store.query(f"SELECT * FROM {view} ORDER BY ALL")
            kept = [n for n, name in enumerate(table.columns) if name not in NOT_COMPARED]
            told[view] = sorted([str(row[n]) for n in kept] for row in table.rows)
        return told


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    if command == "rows":
        print(json.dumps(rows(Path(folder))))
    else:
        if "--die-before" in rest:
            die_before(rest[rest.index("--die-before") + 1])
        sys.exit(up(Path(folder), Path(rest[0]), "--once" in rest))
