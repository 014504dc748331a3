"""The shapes of the API as TypeScript, for the page: prints what monitor/web/src/types.ts holds."""

from collections.abc import Iterator
from typing import Any

from ettwatch_monitor.api import shapes

HEAD = "// What the API answers. `make web` makes it from ettwatch_monitor.api.shapes (scripts/web_types.py).\n"
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def spelled(schema: dict[str, Any]) -> str:
    """One JSON schema as a TypeScript type."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "anyOf" in schema:
        return " | ".join(spelled(one) for one in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array" and "prefixItems" in schema:
        return "[" + ", ".join(spelled(one) for one in schema["prefixItems"]) + "]"
    if kind == "array":
        inner = spelled(schema["items"])
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object":
        inner = schema.get("additionalProperties", True)
        return f"Record<string, {spelled(inner) if isinstance(inner, dict) else 'unknown'}>"
    return SIMPLE.get(str(kind), "unknown")


def interfaces() -> Iterator[str]:
    """Each public shape as an interface, in order of their names."""
    for name in sorted(shapes.__all__):
        schema = getattr(shapes, name).model_json_schema(mode="serialization")
        fields = "".join(f"  {field}: {spelled(of)};\n" for field, of in schema["properties"].items())
        yield f"export interface {name} {{\n{fields}}}\n"


if __name__ == "__main__":
    print(HEAD + "\n" + "\n".join(interfaces()), end="")
