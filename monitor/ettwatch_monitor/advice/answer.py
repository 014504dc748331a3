"""The two questions of an API: what is recoverable, and what would be if some numbers were others."""

from collections.abc import Mapping
from typing import Any, Final

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.advice.advise import advise
from ettwatch_monitor.advice.change import Change
from ettwatch_monitor.advice.plain import plain_advice, plain_what_if
from ettwatch_monitor.advice.read import MOST_EVENTS, Sample, read_fleet
from ettwatch_monitor.advice.replays import Replays
from ettwatch_monitor.advice.words import AdviceError, parse_change

_WEEK: Final = 7 * 24 * 3_600_000_000
_MOST_CHANGES: Final = 20


def advice_of(
    store: Store,
    since: int,
    until: int,
    owners: Owners,
    *,
    team: str | None = None,
    model: str | None = None,
    cluster: str | None = None,
    most: int = MOST_EVENTS,
) -> dict[str, object]:
    """Return advice for the jobs that had time between two times (µs), as values for JSON.

    Raises AdviceError where the times make no sense, and StoreError.
    """
    weeks = _weeks(since, until)
    fleet, sample = read_fleet(store, since, until, team=team, model=model, cluster=cluster, most=most)
    return {**_head(since, until, sample), **plain_advice(advise(fleet, owners, weeks))}


def what_if_of(
    store: Store, since: int, until: int, body: Mapping[str, object], *, most: int = MOST_EVENTS
) -> dict[str, object]:
    """Return what would be under changes, as values for JSON.

    Raises AdviceError where the times or the body make no sense, and StoreError.
    """
    weeks = _weeks(since, until)
    changes, scope = parse_body(body)
    fleet, sample = read_fleet(store, since, until, most=most, **scope)
    return {**_head(since, until, sample), **plain_what_if(Replays(fleet), changes, weeks)}


def parse_body(body: object) -> tuple[tuple[Change, ...], dict[str, str | None]]:
    """Return the changes of a body, and for which jobs they are tried. Raises AdviceError."""
    if not isinstance(body, Mapping):
        raise AdviceError('the body is an object such as {"changes": ["pt2_compilation x 0.3 team=ads"]}')
    unknown = set(body) - {"changes", "team", "model", "cluster", "from", "to"}
    if unknown:
        raise AdviceError(f"{sorted(map(str, unknown))[0][:60]!r} is unknown; give changes, team, model, cluster")
    told: Any = body.get("changes")
    if not isinstance(told, list) or not 1 <= len(told) <= _MOST_CHANGES:
        raise AdviceError(f"changes is a list of 1 to {_MOST_CHANGES} changes")
    scope: dict[str, str | None] = {}
    for name in ("team", "model", "cluster"):
        value = body.get(name)
        if value is not None and not isinstance(value, str):
            raise AdviceError(f"{name} is a text")
        scope[name] = value
    return tuple(change for each in told for change in parse_change(each)), scope


def _weeks(since: int, until: int) -> float:
    if until <= since:
        raise AdviceError("the end of the time is not after its begin; give a later end")
    return (until - since) / _WEEK


def _head(since: int, until: int, sample: Sample) -> dict[str, object]:
    return {"window": {"from_us": since, "to_us": until}, "sample": sample._asdict()}
