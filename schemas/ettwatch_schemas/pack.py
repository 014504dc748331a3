"""Updates to bytes and back. The whole check of good bytes runs inside pydantic-core."""

from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from ettwatch_schemas.errors import UpdateError, is_not, shorten
from ettwatch_schemas.results import JobSummary, PhaseSpan
from ettwatch_schemas.updates import AttemptsUpdate, Columns, Hour, PhaseKey, PhasesUpdate, SegmentsUpdate, Update
from ettwatch_schemas.wire import AttemptsWire, HourWire, PhasesWire, SegmentsWire

_V: Final = 1
_M = TypeVar("_M", bound=BaseModel)

# What is wanted where pydantic reports this.
_WANTED: Final = {
    "int_type": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "an array",
    "tuple_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
# The names of the places in a row, by the field that holds such rows.
_PLACES: Final = {
    ("phases update", "open"): PhaseSpan._fields[1:],
    ("phases update", "final"): PhaseSpan._fields[1:],
    ("phases update", "gone"): PhaseKey._fields,
}


def encode_update(update: Update) -> bytes:
    """Return an update, or a summary, as compact JSON in UTF-8."""
    match update:
        case JobSummary():
            return update.__pydantic_serializer__.to_json(update)
        case AttemptsUpdate():
            body: dict[str, object] = {"open": update.open, "final": update.final, "gone": update.gone}
        case PhasesUpdate():
            opened, final = [span[1:] for span in update.open], [span[1:] for span in update.final]
            body = {"open": opened, "final": final, "gone": update.gone}
        case SegmentsUpdate():
            body = {"first": update.first, "last": update.last, "hours": [_hour_out(hour) for hour in update.hours]}
    return to_json({"v": _V, "job": update.job, "version": update.version, "whole": update.whole, **body})


def decode_summary(data: bytes) -> JobSummary:
    """Return the summary of a job. Raises UpdateError, and nothing else."""
    return validated(JobSummary, data, "job summary")


def decode_attempts(data: bytes) -> AttemptsUpdate:
    """Return an update of attempts. Raises UpdateError, and nothing else."""
    wire = validated(AttemptsWire, data, "attempts update")
    for name, rows in (("open", wire.open), ("final", wire.final)):
        for place, row in enumerate(rows):
            if row.job != wire.job:
                raise UpdateError(f"attempts update: {name}[{place}].job: is not the job of the update")
    return AttemptsUpdate(wire.job, wire.version, wire.whole, wire.open, wire.final, wire.gone)


def decode_phases(data: bytes) -> PhasesUpdate:
    """Return an update of phases. Raises UpdateError, and nothing else."""
    wire = validated(PhasesWire, data, "phases update")
    job = wire.job
    opened, final = [PhaseSpan(job, *row) for row in wire.open], [PhaseSpan(job, *row) for row in wire.final]
    return PhasesUpdate(job, wire.version, wire.whole, opened, final, [PhaseKey(*row) for row in wire.gone])


def decode_segments(data: bytes) -> SegmentsUpdate:
    """Return an update of segments. Raises UpdateError, and nothing else."""
    wire = validated(SegmentsWire, data, "segments update")
    if (wire.first is None) != (wire.last is None):
        raise UpdateError("segments update: first, last: one is null and the other is not")
    hours = [_hour_in(wire.job, place, hour) for place, hour in enumerate(wire.hours)]
    return SegmentsUpdate(wire.job, wire.version, wire.whole, wire.first, wire.last, hours)


def _hour_out(hour: Hour) -> dict[str, object]:
    return {"cell": hour.cell, **hour.columns._asdict()}


def _hour_in(job: str, place: int, wire: HourWire) -> Hour:
    columns = Columns(wire.attempt, wire.stage, wire.start, wire.length, wire.gpus)
    if len({len(column) for column in columns}) > 1:
        raise UpdateError(f"segments update: hours[{place}]: its columns differ in length")
    return Hour.of_columns(job, wire.cell, columns)


def validated(model: type[_M], data: bytes, what: str) -> _M:
    """Return what a message of one of these forms says, without fields that only newer versions know.

    Raises UpdateError, and nothing else.
    """
    try:
        found: _M = model.__pydantic_validator__.validate_json(data, strict=True)
        return found
    except ValidationError as error:
        errors = error.errors(include_url=False)
    version = [e for e in errors if e["loc"] == ("v",) and e["input"] != _V]
    if version:
        raise _explained(version[0], what)
    if any(e["type"] != "extra_forbidden" for e in errors):
        raise _explained(next(e for e in errors if e["type"] != "extra_forbidden"), what)
    # A newer worker tells more than this version knows: it is left out. Rare, so it may cost a second look.
    body = from_json(data)
    for extra in errors:
        _leave_out(body, extra["loc"])
    return validated(model, to_json(body), what)


def _leave_out(body: Any, path: tuple[int | str, ...]) -> None:
    for step in path[:-1]:
        body = body[step]
    del body[path[-1]]


def _explained(error: ErrorDetails, what: str) -> UpdateError:
    """Say in one line which field is wrong, and how."""
    kind, path, value = error["type"], error["loc"], error["input"]
    if kind == "json_invalid":
        return UpdateError(f"{what}: is no JSON ({error['ctx']['error']})")
    if path == ("v",) and kind not in ("missing", "int_type"):
        return UpdateError(f"{what}: v: {shorten(value)} is not {_V}, the version that this reader knows; update it")
    problem = "is missing" if kind == "missing" else f"{shorten(value)} {_problem(error)}"
    field = _spelled(path, what)
    return UpdateError(f"{what}: {field}: {problem}" if field else f"{what}: {problem}")


def _problem(error: ErrorDetails) -> str:
    wanted = _WANTED.get(error["type"])
    if wanted is not None:
        return is_not(error["input"], wanted)
    return f"does not fit: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _spelled(path: tuple[int | str, ...], what: str) -> str:
    names = _PLACES.get((what, str(path[0]))) if len(path) == 3 else None
    if names is not None and isinstance(path[2], int) and path[2] < len(names):
        path = (*path[:2], names[path[2]])
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        else:
            out += f".{step}" if out else str(step)
    return shorten(out) if not out.isprintable() else out
