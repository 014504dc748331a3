"""JSON Schemas of events as they are on the wire, where pydantic's say what Python takes."""

from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from ettwatch_schemas.events import EVENT_TYPES, Event

_UNION: Final = TypeAdapter[Event](Annotated[Event, Field(discriminator="kind")])


def as_on_wire(schema: dict[str, Any]) -> dict[str, Any]:
    """Make `v` and `kind` required, in place: they have defaults in Python, none on the wire."""
    required = {"v", "kind", *schema["required"]}
    schema["required"] = [name for name in schema["properties"] if name in required]
    for name in ("v", "kind"):
        schema["properties"][name].pop("default", None)
    return schema


def any_event(ref_template: str) -> dict[str, Any]:
    """Return the schema of any event, with those of the kinds in `$defs`, to which `ref_template` leads."""
    union = _UNION.json_schema(ref_template=ref_template)
    for model in EVENT_TYPES:
        as_on_wire(union["$defs"][model.__name__])
    return union
