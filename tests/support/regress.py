"""Streams and attempts for tests of the detector: lognormal times, failures by chance, a regression where wanted."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ettwatch_clickhouse import Store
from ettwatch_monitor.alerts.detect import (
    Book,
    Detector,
    Exposure,
    Failed,
    Incident,
    Rate,
    Round,
    Sample,
    Settings,
    Stream,
    StreamKey,
    Times,
    in_order,
)
from ettwatch_monitor.alerts.watch.attempt import AttemptFact

HOUR = 3_600_000_000
DAY = 24 * HOUR
T0 = 1_767_571_200_000_000
"""Monday, 2026-01-05, UTC."""
TTS = StreamKey("tts", (("team", "ads"),))
NOF = StreamKey("nof", (("team", "ads"),))


def starts(
    seed: int,
    *,
    days: int = 42,
    a_day: float = 20.0,
    factor: float = 1.0,
    since: float = 1e9,
    until: float = 1e9,
    models: int = 3,
    swing: float = 0.0,
    team: str = "ads",
) -> list[Sample]:
    """Start times with a spread of 0.3; `factor` times as long from day `since` to day `until`."""
    rng = np.random.default_rng(seed)
    number = int(days * a_day)
    at = np.sort(rng.uniform(0, days, number))
    model = rng.integers(0, models, number)
    usual = np.exp(np.linspace(5.5, 6.5, models))
    value = usual[model] * np.exp(rng.normal(0, 0.3, number)) * (1 + swing * np.sin(2 * np.pi * at))
    value[(at >= since) & (at < until)] *= factor
    return [
        Sample(T0 + int(day * DAY), f"{team}-{n}/0", f"{team}-{n}", float(seconds), team, f"m{m}", "c1", 8)
        for n, (day, seconds, m) in enumerate(zip(at, value, model, strict=True))
    ]


def failures(
    seed: int, *, days: int = 84, a_day: float = 3.0, factor: float = 1.0, since: float = 1e9, team: str = "ads"
) -> Rate:
    """Failures by chance over even GPU-hours; `factor` times as often from day `since`."""
    rng = np.random.default_rng(seed)
    told: list[Failed] = []
    at = 0.0
    while True:
        at += float(rng.exponential(1.0)) / (a_day * (factor if at >= since else 1.0))
        if at >= days:
            break
        n = len(told)
        cause = ("hardware", "network", "unknown")[int(rng.integers(3))]
        told.append(Failed(T0 + int(at * DAY), f"{team}-{n}/0", f"{team}-{n}", cause, team, "m0", "c1", 8))
    return Rate(told, Exposure(T0, np.full(days * 24, 64.0), T0 + days * DAY))


def look(now: int, streams: Mapping[StreamKey, Stream], book: Book | None = None, **settings: Any) -> Round:
    """One round of a new detector."""
    return Detector(Settings(**settings)).look(now, upto(now, streams), book or Book())


def upto(now: int, streams: Mapping[StreamKey, Stream]) -> dict[StreamKey, Stream]:
    """What is known at an instant."""
    shown: dict[StreamKey, Stream] = {}
    for key, stream in streams.items():
        if isinstance(stream, Times):
            some = stream.samples
            shown[key] = Times(some[: bisect_right(some, now, key=_ts)], True) if stream.ordered else stream
        else:
            hours = stream.exposure.hours[: max((now - stream.exposure.start) // HOUR, 0)]
            failed = (
                stream.failures[: bisect_right(stream.failures, now, key=_ts)] if stream.ordered else stream.failures
            )
            shown[key] = Rate(failed, Exposure(stream.exposure.start, hours, now), stream.ordered)
    return shown


def _ts(one: Sample | Failed) -> int:
    return one.ts


def rounds(
    streams: Mapping[StreamKey, Stream],
    times: Iterable[int],
    *,
    book: Book | None = None,
    anew: bool = False,
    detector: Detector | None = None,
) -> tuple[Book, list[Incident], list[Incident]]:
    """Round after round; `anew` with another detector each time. Returns the book, what opened and what closed."""
    book = book or Book()
    detector = detector or Detector()
    streams = {key: _ordered(stream) for key, stream in streams.items()}
    opened: list[Incident] = []
    closed: list[Incident] = []
    for now in times:
        detector = Detector(detector.settings) if anew else detector
        told = detector.look(now, upto(now, streams), book)
        book = told.book
        opened += told.opened
        closed += told.closed
    return book, opened, closed


def _ordered(stream: Stream) -> Stream:
    """Sort it once instead of in each round."""
    if isinstance(stream, Times):
        return Times(in_order(stream.samples, 1 << 62), True)
    return Rate(in_order(stream.failures, 1 << 62), stream.exposure, True)


def attempts(
    seed: int,
    *,
    days: int = 42,
    a_day: float = 20.0,
    slow: float = 1.0,
    since: float = 1e9,
    team: str = "ads",
    stage: str = "trainer_init.checkpoint_load",
) -> list[AttemptFact]:
    """Attempts that start, train for an hour and succeed; a stage of their start-up takes longer from day `since`."""
    rng = np.random.default_rng(seed)
    made = []
    for n, day in enumerate(np.sort(rng.uniform(0, days, int(days * a_day)))):
        start = T0 + int(day * DAY)
        luck = float(np.exp(rng.normal(0, 0.25)))
        stages = {"hardware_setup": 60 * luck, "trainer_init": 80 * luck, stage: 60 * luck}
        if day >= since:
            stages[stage] *= slow
        seconds = sum(stages.values())
        batch = start + int(seconds * 1e6)
        end = batch + HOUR
        made.append(
            AttemptFact(
                job=f"{team}-{n}",
                number=0,
                team=team,
                model=f"m{n % 2}",
                cluster="c1",
                gpus=8,
                start=start,
                end=end,
                open=False,
                outcome="succeeded",
                cause="",
                first_batch=batch,
                tts_s=seconds,
                ttr_s=None,
                stages={**stages, "effective_training": 3600.0},
            )
        )
    return made


def insert(store: Store, told: Sequence[AttemptFact]) -> None:
    """Put attempts, and a job for each, into the tables."""

    def micro(stages: Mapping[str, float]) -> dict[str, int]:
        return {name: round(seconds * 1e6) for name, seconds in stages.items()}

    def components(stages: Mapping[str, float]) -> dict[str, int]:
        sums: dict[str, float] = {}
        for name, seconds in stages.items():
            head = name.partition(".")[0]
            if head != "effective_training":
                sums[head] = sums.get(head, 0.0) + seconds
        return micro(sums)

    rows: list[tuple[object, ...]] = [
        (
            *(a.job, a.number, 1, 1, True, False, a.start, a.end, a.open, a.outcome or None, a.cause or None, a.gpus),
            *(a.first_batch is not None, a.first_batch),
            *(None if seconds is None else round(seconds * 1e6) for seconds in (a.tts_s, a.ttr_s)),
            *(0, round(a.stages.get("effective_training", 0) * 1e6), 0, components(a.stages), micro(a.stages), {}, []),
        )
        for a in told
    ]
    names = (
        "job attempt version written final gone start end open outcome cause gpus trained first_batch tts_us ttr_us "
        "recovery_us effective_us unsaved_us components_us stages_us hidden_us flags"
    )
    store.insert("attempts_log", names.split(), rows)
    names = "job version written rules_version team model cluster labels status attempts gpus t0 t1 flags"
    jobs = {a.job: a for a in told}
    store.insert(
        "jobs_log",
        names.split(),
        [
            (
                *(a.job, 1, 1, "1", a.team or None, a.model or None, a.cluster or None, {}, "succeeded", 1),
                *(a.gpus, a.start, a.end, []),
            )
            for a in jobs.values()
        ],
    )
