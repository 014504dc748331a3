"""Two ways to the same numbers: what SQL says of a job, and a replay of the raw events behind it."""

import json
from pathlib import Path

from ettwatch_app.replay import Options, replay_files
from ettwatch_clickhouse import Store
from ettwatch_schemas import JobSummary


def export_events(store: Store, job: str, path: Path) -> int:
    """Write the raw events of a job as JSON lines; return how many there are. Raises StoreError, OSError."""
    found = store.query("SELECT raw FROM events WHERE job = {job:String} ORDER BY ts, id", {"job": job})
    path.write_text("".join(f"{row[0]}\n" for row in found.rows), "utf-8")
    return len(found.rows)


def differences(summary: JobSummary, path: Path) -> list[str]:
    """Replay the events in `path` and tell each field in which the result differs from `summary`."""
    outcome = replay_files([str(path)], Options())
    lines = list(outcome.results)
    if len(lines) != 1:
        return [f"a replay of {path} gives {len(lines)} jobs instead of one"]
    replayed = json.loads(lines[0])
    told = summary.model_dump(mode="json")
    return [
        f"{name}: SQL says {told[name]}, replay says {replayed[name]}"
        for name in told
        if name != "version" and told[name] != replayed[name]
    ]
