"""The JSON Schemas of version 1: one per kind of event, their union, and the two summaries.

`python -m ettwatch_schemas.jsonschema` writes them beside the package's sources, `--check` only tells whether
the files there are up to date (exit code 1 where they are not).
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from ettwatch_schemas.events import EVENT_TYPES, KINDS, Event
from ettwatch_schemas.results import AttemptSummary, JobSummary

FOLDER: Final = Path(__file__).parent / "json" / "v1"
"""Where the files are."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file, without `.schema.json`. Each stands alone."""
    bodies = {kind: _as_on_wire(model.model_json_schema()) for kind, model in zip(KINDS, EVENT_TYPES, strict=True)}
    union = TypeAdapter(Annotated[Event, Field(discriminator="kind")]).json_schema()
    for model in EVENT_TYPES:
        _as_on_wire(union["$defs"][model.__name__])
    bodies["event"] = {"title": "Event", "description": "Any event.", **union}
    bodies["attempt_summary"] = AttemptSummary.model_json_schema(mode="serialization")
    bodies["job_summary"] = JobSummary.model_json_schema(mode="serialization")
    return {name: {"$schema": _DIALECT, "$id": f"urn:ettwatch:v1:{name}", **body} for name, body in bodies.items()}


def _as_on_wire(schema: dict[str, Any]) -> dict[str, Any]:
    """Make `v` and `kind` required, in place: they have defaults in Python, none on the wire."""
    required = {"v", "kind", *schema["required"]}
    schema["required"] = [name for name in schema["properties"] if name in required]
    for name in ("v", "kind"):
        schema["properties"][name].pop("default", None)
    return schema


def rendered() -> dict[Path, str]:
    """Return the text of every file by its path."""
    return {
        FOLDER / f"{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas().items()
    }


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
