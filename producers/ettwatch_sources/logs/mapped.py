"""Any CSV or JSON lines, by a mapping file that says what a row means."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ettwatch_schemas import EVENT_TYPES, KINDS
from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.logs.rows import rows
from ettwatch_sources.mapping import Mapped, Rule, Value, parse_mapping
from ettwatch_sources.times import NoTime, duration
from ettwatch_sources.told import Told

_MODELS: Final = dict(zip(KINDS, EVENT_TYPES, strict=True))
_WHOLE: Final = frozenset(
    {"position", "step", "data_wait_us", "gpus", "world_size", "bytes", "exit_code", "signal", "attempt", "rank"}
)
_TIMES: Final = frozenset({"eligible_ts", "started_ts"})


class _Missing(ValueError):
    """A row lacks what a rule needs."""


def read(feed: Feed) -> Iterator[Told]:
    """Read a file by the mapping in the options."""
    if feed.options.mapping is None:
        feed.refuse("the kind `mapped` needs a mapping file; give it with --mapping FILE", 0)
        return
    mapped = parse_mapping(feed.options.mapping)
    source = rows(feed, mapped.delimiter) if mapped.form == "csv" else _objects(feed)
    for row in source:
        used = False
        for rule in mapped.rules:
            if _holds(rule, row):
                used = True
                try:
                    yield from _event(feed, mapped, rule, row)
                except (_Missing, NoTime) as error:
                    feed.refuse(f"{rule.kind}: {error}")
        if not used:
            feed.refuse("no rule of the mapping holds for this row")


def _objects(feed: Feed) -> Iterator[Mapping[str, Any]]:
    for line in feed.lines():
        if not line.text.strip():
            continue
        try:
            value = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            if line.cut:
                feed.flag("truncated")
            feed.refuse(f"no JSON: {error}")
            continue
        if isinstance(value, dict):
            yield value
        else:
            feed.refuse("no JSON object")


def _holds(rule: Rule, row: Mapping[str, Any]) -> bool:
    for name, test in rule.when:
        found = _field(row, name)
        if isinstance(test, Mapping):
            if found is None or not re.search(str(test["matches"]), str(found)):
                return False
        elif isinstance(test, list):
            if not any(_same(found, one) for one in test):
                return False
        elif not _same(found, test):
            return False
    return True


def _same(found: object, wanted: object) -> bool:
    """CSV has only texts: 1 and "1" are the same."""
    if found is None or wanted is None:
        return found is wanted
    return found == wanted or str(found) == str(wanted)


def _field(row: Mapping[str, Any], name: str) -> Any:
    """A field by its name, or by a dotted path into objects."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _get(value: Value, row: Mapping[str, Any], name: str) -> Any:
    """What a rule's value is in this row; None where the row does not say."""
    found = value.value if value.field is None else _field(row, value.field)
    if isinstance(found, str) and not found.strip() and value.field is not None:
        found = None
    if found is None:
        found = value.default
    if found is None:
        return None
    if value.map is not None:
        if str(found) not in value.map:
            raise _Missing(f"{name}: {str(found)[:60]!r} is not in the map")
        found = value.map[str(found)]
    if value.times != 1 or value.plus:
        try:
            found = float(found) * value.times + value.plus
        except (TypeError, ValueError, OverflowError):
            raise _Missing(f"{name}: {str(found)[:60]!r} is no number") from None
    return found


def _event(feed: Feed, mapped: Mapped, rule: Rule, row: Mapping[str, Any]) -> Iterator[Told]:
    job = feed.options.job or (mapped.job and _get(mapped.job, row, "job")) or feed.default_job
    own: dict[str, Any] = {"job": str(job)}
    if mapped.source != "trainer":
        own["source"] = mapped.source
    if rule.kind not in {"job_submitted", "job_ended"}:
        attempt = _get(mapped.attempt, row, "attempt") if mapped.attempt else None
        own["attempt"] = feed.options.attempt + (_whole(attempt, "attempt") if attempt is not None else 0)
    for name, value in (("rank", mapped.rank), ("host", mapped.host)):
        found = _get(value, row, name) if value else None
        if found is not None:
            own[name] = _whole(found, name) if name == "rank" else str(found)
    for name, value in rule.set.items():
        found = _get(value, row, name)
        if found is None:
            continue
        if name in _WHOLE:
            found = _whole(found, name)
        elif name in _TIMES:
            found = _time(feed, value, row, name)
        elif name == "labels" and isinstance(found, Mapping):
            found = {str(key): str(text) for key, text in found.items()}
        own[name] = found
    if rule.kind == "phase":
        yield from _span(feed, rule, row, own)
        return
    own["ts"] = feed.in_order(_time(feed, rule.time or mapped.time, row, "time"), own["job"])
    yield from feed.tell(_MODELS[rule.kind], **own)


def _span(feed: Feed, rule: Rule, row: Mapping[str, Any], own: dict[str, Any]) -> Iterator[Told]:
    assert rule.start is not None
    start = _time(feed, rule.start, row, "start")
    if rule.end is not None:
        end = _time(feed, rule.end, row, "end")
    else:
        assert rule.duration is not None
        length = _get(rule.duration, row, "duration")
        if length is None:
            raise _Missing("duration: the row does not say")
        end = start + duration(length, rule.duration.unit or "s")
    span = f"{own.get('phase')}@{start}"
    begun = list(feed.tell(_MODELS["phase_started"], ts=start, span=span, **own))
    if begun:
        ends = {key: own[key] for key in ("job", "attempt", "rank", "host", "source") if key in own}
        yield from begun
        yield from feed.tell(_MODELS["phase_ended"], ts=end, span=span, **ends)


def _time(feed: Feed, value: Value, row: Mapping[str, Any], name: str) -> int:
    found = _get(value, row, name)
    if found is None:
        raise _Missing(f"{name}: the row does not say")
    unit = value.unit
    if unit is None or unit == "iso":
        if isinstance(found, str) and re.match(r"\s*\d{4}[-/]", found):
            return feed.time_of_text(found)
        if unit == "iso":
            raise NoTime(f"{str(found)[:60]!r} is no time")
        raise NoTime(f"{str(found)[:60]!r}: a number needs a unit (s, ms, us or ns) in the mapping")
    return feed.time_of_number(found, unit)


def _whole(found: Any, name: str) -> int:
    try:
        number = float(found)
    except (TypeError, ValueError, OverflowError):
        raise _Missing(f"{name}: {str(found)[:60]!r} is no number") from None
    if math.isnan(number) or abs(number) > 2**63:
        raise _Missing(f"{name}: {str(found)[:60]!r} is no whole number")
    exact = found if isinstance(found, int) else _exact(found)
    return exact if exact is not None else round(number)


def _exact(found: Any) -> int | None:
    """A whole number in a text, without the detour through a float."""
    try:
        return int(str(found).strip())
    except ValueError:
        return None


KIND: Final = Kind(
    name="mapped",
    title="any CSV or JSON lines, by a mapping file",
    read=read,
    is_it=lambda head, name: False,
)
