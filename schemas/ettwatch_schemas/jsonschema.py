"""The JSON Schemas of version 1 (one per kind of event, their union, the two summaries), and the AsyncAPI document.

`python -m ettwatch_schemas.jsonschema` writes them beside the package's sources, `--check` only tells whether
the files there are up to date (exit code 1 where they are not).
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ettwatch_schemas.anyevent import any_event, as_on_wire
from ettwatch_schemas.asyncapi import asyncapi
from ettwatch_schemas.events import EVENT_TYPES, KINDS
from ettwatch_schemas.results import AttemptSummary, JobSummary

FOLDER: Final = Path(__file__).parent / "json" / "v1"
"""Where the files are."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file, without `.schema.json`. Each stands alone."""
    bodies = {kind: as_on_wire(model.model_json_schema()) for kind, model in zip(KINDS, EVENT_TYPES, strict=True)}
    bodies["event"] = {"title": "Event", "description": "Any event.", **any_event("#/$defs/{model}")}
    bodies["attempt_summary"] = AttemptSummary.model_json_schema(mode="serialization")
    bodies["job_summary"] = JobSummary.model_json_schema(mode="serialization")
    return {name: {"$schema": _DIALECT, "$id": f"urn:ettwatch:v1:{name}", **body} for name, body in bodies.items()}


def rendered() -> dict[Path, str]:
    """Return the text of every file by its path."""
    bodies = {f"{name}.schema.json": schema for name, schema in schemas().items()} | {"asyncapi.json": asyncapi()}
    return {FOLDER / name: json.dumps(body, indent=2, ensure_ascii=False) + "\n" for name, body in bodies.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the files; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ettwatch_schemas.jsonschema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, tell what differs")
    check = parser.parse_args(argv).check
    files = rendered()
    stale = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    stale += [path for path in FOLDER.glob("*.json") if path not in files]
    for path in sorted(stale):
        if check:
            print(f"{path} is out of date; run python -m ettwatch_schemas.jsonschema")
        elif path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
            print(f"wrote {path}")
        else:
            path.unlink()
            print(f"removed {path}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
