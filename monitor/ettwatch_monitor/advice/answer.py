"""The two questions of an API: what is recoverable, and what would be if some numbers were others."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners
from ettwatch_monitor.advice.advise import About, advise
from ettwatch_monitor.advice.change import Change
from ettwatch_monitor.advice.plain import plain_advice, plain_what_if
from ettwatch_monitor.advice.read import MOST_EVENTS, Sample, read_fleet, read_job
from ettwatch_monitor.advice.replays import Replays
from ettwatch_monitor.advice.words import AdviceError, parse_change
from ettwatch_schemas import COMPONENTS, component_of

_WEEK: Final = 7 * 24 * 3_600_000_000
_MOST_CHANGES: Final = 20


class NoJobError(AdviceError):
    """There is no job of that name, or it has not begun an attempt yet."""


def advice_of(
    store: Store,
    since: int,
    until: int,
    owners: Owners,
    *,
    team: str | None = None,
    model: str | None = None,
    cluster: str | None = None,
    about: About | None = None,
    most: int = MOST_EVENTS,
    go_on: Callable[[], object] | None = None,
) -> dict[str, object]:
    """Return advice for the jobs that had time between two times (µs), as values for JSON.

    For one job (see `about`) the times are its own, and team, model and cluster are not looked at. `go_on` is called
    before each job that is read or laid out.

    Raises AdviceError where the times or the stage make no sense, NoJobError, and StoreError.
    """
    asked = checked(About() if about is None else about)
    if asked.job is not None:
        found = read_job(store, asked.job, go_on=go_on)
        if found is None:
            raise NoJobError(f"there is no job {asked.job[:200]!r} that has begun an attempt")
        fleet, sample, since, until = found
        team = model = cluster = None
        until = max(until, since + 1)
    else:
        _weeks(since, until)
        scope = {"team": team, "model": model, "cluster": cluster}
        fleet, sample = read_fleet(store, since, until, **scope, most=most, go_on=go_on)
    told = advise(fleet, owners, _weeks(since, until), about=asked)
    return {
        **_head(since, until, sample),
        "asked": {"team": team, "model": model, "cluster": cluster, **asked_of(asked)},
        **plain_advice(told),
    }


def checked(about: About) -> About:
    """Return what advice is asked about. Raises AdviceError where the stage is none."""
    if about.stage is not None:
        try:
            component_of(about.stage)
        except ValueError:
            shown = repr(about.stage[:60])
            raise AdviceError(f"{shown} is no stage; it begins with one of {', '.join(COMPONENTS)}") from None
    return about


def asked_of(about: About) -> dict[str, str | None]:
    """Return what was asked about, as plain values."""
    return {"owner": about.owner, "stage": about.stage, "job": about.job}


def what_if_of(
    store: Store,
    since: int,
    until: int,
    body: Mapping[str, object],
    *,
    most: int = MOST_EVENTS,
    go_on: Callable[[], object] | None = None,
) -> dict[str, object]:
    """Return what would be under changes, as values for JSON. See :func:`advice_of` for `go_on`.

    Raises AdviceError where the times or the body make no sense, and StoreError.
    """
    weeks = _weeks(since, until)
    changes, scope = parse_body(body)
    fleet, sample = read_fleet(store, since, until, most=most, go_on=go_on, **scope)
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
