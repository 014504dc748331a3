"""From attempts to streams: what is measured of whom, without what planned maintenance explains."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ettwatch_core.ownership import Owners
from ettwatch_monitor.alerts.detect import FLEET, Exposure, Failed, Rate, Sample, Stream, StreamKey, Times
from ettwatch_monitor.alerts.watch.attempt import AttemptFact
from ettwatch_monitor.alerts.watch.window import Excluded, Window
from ettwatch_schemas import COMPONENTS, EFFECTIVE

__all__ = ["SCOPES", "Fleet", "make_streams"]

HOUR_US: Final = 3_600_000_000
SCOPES: Final = ("team", "owner", "fleet", "model", "cluster")
"""Whose streams there are; by default the first three."""

_MUCH: Final = 0.1
"""A window that takes so large a part of an attempt makes its shares worthless."""

Scope = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is tested in a round.

    Attributes:
        streams: By key.
        excluded: What windows left out.
        failed: Jobs that failed in the last minutes, with the team of each.
        running: How many jobs ran at the begin of those minutes.
    """

    streams: dict[StreamKey, Stream]
    excluded: tuple[Excluded, ...]
    failed: tuple[tuple[str, str], ...]
    running: int


@dataclass(slots=True)
class _Left:
    """Counts of what one window leaves out."""

    starts: int = 0
    attempts: int = 0
    failures: int = 0
    gpu_us: int = 0


@dataclass(slots=True)
class _Building:
    begin: int
    now: int
    times: dict[StreamKey, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    failures: dict[Scope, list[Failed]] = field(default_factory=lambda: defaultdict(list))
    held: dict[Scope, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))


def make_streams(
    attempts: Iterable[AttemptFact],
    owners: Owners,
    windows: Sequence[Window],
    begin: int,
    now: int,
    scopes: Sequence[str] = SCOPES[:3],
    pulse_us: int = HOUR_US // 2,
) -> Fleet:
    """Return the streams of all attempts.

    Args:
        attempts: All that were alive since `begin`, in any order.
        owners: Whose the components are.
        windows: Planned maintenance.
        begin: The begin of what was read, in microseconds.
        now: The time.
        scopes: Of whom, of `SCOPES`.
        pulse_us: How far back "just failed" reaches.
    """
    building = _Building(begin // HOUR_US * HOUR_US, now)
    left = {window: _Left() for window in windows}
    failed: dict[str, str] = {}
    running: set[str] = set()
    for attempt in attempts:
        if attempt.start >= now:
            continue
        mine = [window for window in windows if window.of(attempt.team, attempt.model, attempt.cluster)]
        _add(building, attempt, owners, mine, left, scopes)
        planned = any(window.start <= attempt.end < window.end for window in mine)
        if attempt.start < now - pulse_us <= attempt.end:
            running.add(attempt.job)
        if attempt.failed and not planned and now - pulse_us < attempt.end <= now:
            failed[attempt.job] = attempt.team
            running.add(attempt.job)
    streams: dict[StreamKey, Stream] = {key: Times(some) for key, some in building.times.items()}
    for scope, spans in building.held.items():
        exposure = Exposure(building.begin, _hours(spans, building.begin, now), now)
        streams[StreamKey("nof", scope)] = Rate(building.failures[scope], exposure)
    excluded = tuple(
        Excluded(window, one.starts, one.attempts, one.failures, one.gpu_us / HOUR_US) for window, one in left.items()
    )
    return Fleet(streams, excluded, tuple(sorted(failed.items())), len(running))


def _add(
    building: _Building,
    attempt: AttemptFact,
    owners: Owners,
    windows: Sequence[Window],
    left: dict[Window, _Left],
    scopes: Sequence[str],
) -> None:
    own: list[Scope] = [((name, value),) for name, value in _named(attempt, scopes)]
    if "fleet" in scopes:
        own.append(FLEET)
    _hold(building, attempt, own, windows, left)
    seconds = attempt.tts_s if attempt.tts_s is not None else attempt.ttr_s
    if seconds is not None and attempt.first_batch is not None and seconds > 0:
        since = attempt.first_batch - int(seconds * 1e6)
        touched = [window for window in windows if window.overlap(since, attempt.first_batch)]
        for window in touched:
            left[window].starts += 1
        if not touched:
            _start(building, attempt, seconds, attempt.first_batch, own)
    if attempt.open or attempt.end > building.now or attempt.end < building.begin:
        return
    in_it = [window for window in windows if window.start <= attempt.end < window.end]
    if attempt.failed:
        for window in in_it:
            left[window].failures += 1
        if not in_it:
            for scope in own:
                building.failures[scope].append(_failure(attempt))
    length = max(attempt.end - attempt.start, 1)
    spoilt = [window for window in windows if window.overlap(attempt.start, attempt.end) > _MUCH * length]
    for window in spoilt:
        left[window].attempts += 1
    if not spoilt:
        _shares(building, attempt, owners, own, scopes)


def _named(attempt: AttemptFact, scopes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the scopes of an attempt that have a name: a job without a team is nobody's, and the fleet's."""
    known = (("team", attempt.team), ("model", attempt.model), ("cluster", attempt.cluster))
    return [(name, value) for name, value in known if name in scopes and value]


def _hold(
    building: _Building,
    attempt: AttemptFact,
    own: list[Scope],
    windows: Sequence[Window],
    left: dict[Window, _Left],
) -> None:
    start, end = max(attempt.start, building.begin), min(attempt.end, building.now)
    pieces = [(start, end)]
    for window in windows:
        left[window].gpu_us += window.overlap(start, end) * attempt.gpus
        pieces = [
            piece
            for first, last in pieces
            for piece in ((first, min(last, window.start)), (max(first, window.end), last))
            if piece[0] < piece[1]
        ]
    for scope in own:
        building.held[scope] += [(first, last, attempt.gpus) for first, last in pieces if first < last]


def _start(building: _Building, attempt: AttemptFact, seconds: float, ts: int, own: list[Scope]) -> None:
    metric = "tts" if attempt.tts_s is not None else "ttr"
    compiled = sum(
        part
        for stage, part in attempt.stages.items()
        if stage.startswith("pt2_compilation") and stage != "pt2_compilation.recompile"
    )
    for scope in own:
        building.times[StreamKey(metric, scope)].append(_sample(attempt, ts, seconds))
        if compiled > 0:
            building.times[StreamKey("compile", scope)].append(_sample(attempt, ts, compiled))


def _shares(building: _Building, attempt: AttemptFact, owners: Owners, own: list[Scope], scopes: Sequence[str]) -> None:
    total = sum(attempt.stages.values())
    if total <= 0:
        return
    parts = dict.fromkeys(COMPONENTS, 0.0)
    owned: dict[tuple[str, str], float] = {}
    for stage, seconds in attempt.stages.items():
        component = stage.partition(".")[0]
        if component == EFFECTIVE:
            continue
        parts[component] = parts.get(component, 0.0) + seconds
        owner = owners.of(stage, attempt.cluster or None, attempt.model or None)
        if owner is not None:
            of = (owner.team, component)
            owned[of] = owned.get(of, 0.0) + seconds
    if "owner" in scopes:
        for component in COMPONENTS:
            # An owner whose component took no time has a share of 0: it must not look as if nothing had been served.
            owner = owners.of(component, attempt.cluster or None, attempt.model or None)
            if owner is not None:
                owned.setdefault((owner.team, component), 0.0)
        for (team, component), seconds in owned.items():
            key = StreamKey(f"part.{component}", (("owner", team), ("component", component)))
            building.times[key].append(_sample(attempt, attempt.end, seconds / total))
    effective = attempt.stages.get(EFFECTIVE, 0.0) / total
    for scope in own:
        building.times[StreamKey("ett", scope)].append(_sample(attempt, attempt.end, effective))
        if scope == FLEET:
            continue  # that is what the owners' shares are
        for component, seconds in parts.items():
            key = StreamKey(f"share.{component}", scope)
            building.times[key].append(_sample(attempt, attempt.end, seconds / total))


def _sample(attempt: AttemptFact, ts: int, value: float) -> Sample:
    return Sample(
        ts, attempt.id, attempt.job, value, attempt.team, attempt.model, attempt.cluster, attempt.gpus, attempt.stages
    )


def _failure(attempt: AttemptFact) -> Failed:
    return Failed(
        attempt.end,
        attempt.id,
        attempt.job,
        attempt.cause or "unknown",
        attempt.team,
        attempt.model,
        attempt.cluster,
        attempt.gpus,
    )


def _hours(
    spans: Sequence[tuple[int, int, int]], begin: int, now: int
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Spread GPU-hours over the hours from `begin` on."""
    number = max(-(-(now - begin) // HOUR_US), 0)
    edges = begin + np.arange(number + 1, dtype=np.float64) * HOUR_US
    # What was held until each edge: the sum over spans of gpus * (edge - start)+ - gpus * (edge - end)+.
    points = np.array(
        [(start, gpus) for start, _, gpus in spans] + [(end, -gpus) for _, end, gpus in spans], dtype=float
    )
    if not len(points):
        return np.zeros(number)
    points = points[points[:, 0].argsort(kind="stable")]
    slopes, moments = np.cumsum(points[:, 1]), np.cumsum(points[:, 1] * (points[:, 0] - begin))
    at = np.searchsorted(points[:, 0], edges, side="right") - 1
    reached = np.where(at >= 0, slopes[at] * (edges - begin) - moments[at], 0.0)
    hours: np.ndarray[tuple[int], np.dtype[np.float64]] = np.diff(reached) / HOUR_US
    return np.clip(hours, 0.0, None)
