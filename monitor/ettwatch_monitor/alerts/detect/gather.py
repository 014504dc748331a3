"""From findings to episodes: what moved together is told once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from ettwatch_monitor.alerts.detect.incident import Book, Incident
from ettwatch_monitor.alerts.detect.look import Effect, Look
from ettwatch_monitor.alerts.detect.metrics import METRICS
from ettwatch_monitor.alerts.detect.sample import FLEET, StreamKey
from ettwatch_monitor.alerts.detect.settings import Settings

__all__ = ["Found", "gather"]

_OVERRATED: Final = 0.6

Found = tuple[StreamKey, Look, Effect]


def gather(
    now: int, found: Sequence[Found], looks: Mapping[StreamKey, Look], book: Book, settings: Settings
) -> tuple[Book, list[Incident], list[Incident]]:
    """Return the book with what was found, the new episodes, and those that were joined.

    Args:
        now: The time, in microseconds.
        found: What got worse; what comes first is told, and what moved with it joins it.
        looks: All streams that were tested.
        book: What is remembered.
        settings: Of the detector.
    """
    opened: dict[StreamKey, Incident] = {}
    changed: dict[StreamKey, Incident] = {}
    storms = _storms(found, looks, book, settings)
    for key, members in storms.items():
        if book.open(key) is None:
            one = _fleet(now, key, members)
            book, opened[key] = book.written(one), one
    for key, look, effect in found:
        if book.open(key) is not None:
            continue
        home = _home(key, look, book, settings)
        if home is not None and key in home.also:
            continue
        if home is not None:
            joined = replace(home, also=(*home.also, key))
            book = book.written(joined)
            (opened if home.key in opened else changed)[home.key] = joined
        else:
            one = _regression(now, key, look, effect)
            book, opened[key] = book.written(one), one
    if len(opened) > settings.most_new:
        book, opened = _capped(now, list(opened.values()), book, settings)
    return book, list(opened.values()), list(changed.values())


def _regression(now: int, key: StreamKey, look: Look, effect: Effect) -> Incident:
    return Incident(
        key=key,
        sort="regression",
        onset=look.onset,
        earliest=look.earliest,
        latest=look.latest,
        found=now,
        p=look.p,
        shift=_surely(effect),
        effect=effect,
    )


def _surely(effect: Effect) -> float:
    return max(effect.shift_from, _OVERRATED * effect.shift)


def _home(key: StreamKey, look: Look, book: Book, settings: Settings) -> Incident | None:
    """Return the open episode that a finding belongs to."""
    for one in book.all_open():
        if key in one.also and one.near(look.onset, settings.together_days):
            return one
    for one in book.all_open():
        if one.sort in ("threshold", "outage") or not one.near(look.onset, settings.together_days):
            continue
        if METRICS[one.key.metric].by_owner and key.scope != one.key.scope:
            continue  # the owner of a component hears of it besides the team whose jobs they are
        kin = METRICS[key.metric].family & METRICS[one.key.metric].family
        # That the fleet is worse says nothing new where one team is; that a team is, where the fleet is by the same.
        if kin and key.scope in (one.key.scope, FLEET):
            return one
        if key.metric == one.key.metric and one.key.scope == FLEET:
            return one
    return None


def _storms(
    found: Sequence[Found], looks: Mapping[StreamKey, Look], book: Book, settings: Settings
) -> dict[StreamKey, list[Found]]:
    """Return the metrics that got worse in so many scopes at once that it is the fleet's matter."""
    storms: dict[StreamKey, list[Found]] = {}
    for metric in {key.metric for key, _, _ in found}:
        mine = [one for one in found if one[0].metric == metric and one[0].scope != FLEET]
        if not mine:
            continue
        first = mine[0][1]
        together = [one for one in mine if _near(one[1], first, settings)]
        standing = [
            one.key
            for one in book.all_open()
            if one.key.metric == metric and one.key.scope != FLEET and one.near(first.onset, settings.together_days)
        ]
        scopes = sum(key.metric == metric and key.scope != FLEET for key in looks) + len(standing)
        number = len(together) + len(standing)
        if number >= max(settings.storm_least, settings.storm_share * scopes):
            storms[StreamKey(metric, FLEET)] = together
    return storms


def _near(one: Look, other: Look, settings: Settings) -> bool:
    reach = settings.together_days * 86_400_000_000
    return one.earliest - reach <= other.latest and other.earliest - reach <= one.latest


def _fleet(now: int, key: StreamKey, members: Iterable[Found]) -> Incident:
    some = list(members)
    surest = min(some, key=lambda one: one[1].p)
    return Incident(
        key=key,
        sort="fleet",
        onset=surest[1].onset,
        earliest=min(look.earliest for _, look, _ in some),
        latest=max(look.latest for _, look, _ in some),
        found=now,
        p=surest[1].p,
        shift=median(_surely(effect) for _, _, effect in some),
        effect=surest[2],
        also=tuple(name for name, _, _ in some),
    )


def _capped(now: int, opened: list[Incident], book: Book, settings: Settings) -> tuple[Book, dict[StreamKey, Incident]]:
    """Keep the surest, and have one episode name the others."""
    opened.sort(key=lambda one: (one.sort != "fleet", one.p, one.key))
    kept, rest = opened[: settings.most_new - 1], opened[settings.most_new - 1 :]
    also = tuple(dict.fromkeys(key for one in rest for key in (one.key, *one.also)))
    left = {one.key for one in rest}
    book = Book(tuple(one for one in book.incidents if not (one.open and one.key in left)))
    key = StreamKey(rest[0].key.metric, FLEET)
    home = book.open(key)
    if home is None:
        many = replace(rest[0], key=key, sort="fleet", found=now, also=also)
    else:
        many = replace(home, also=tuple(dict.fromkeys((*home.also, *also))))
    return book.written(many), {one.key: one for one in (*kept, many)}
