"""What the rollups have to say, counted in Python from the rows of the views that the rest of the tests trust."""

from collections import defaultdict
from datetime import datetime
from typing import Any, NamedTuple

from ettwatch_clickhouse import Store

_Key = tuple[int, str, str, str]


class Sums(NamedTuple):
    """What is counted of one team, model and cluster in one hour or day."""

    stages: dict[str, tuple[int, int]]
    jobs: int
    attempts: int
    tts_us: list[int]
    ttr_us: list[int]
    causes: dict[str, int]
    infra: int
    preempted: int
    unsaved_gpu_us: int


class _Count:
    def __init__(self) -> None:
        self.stages: dict[str, tuple[int, int]] = {}
        self.jobs: set[str] = set()
        self.attempts = self.infra = self.preempted = self.unsaved = 0
        self.tts: list[int] = []
        self.ttr: list[int] = []
        self.causes: dict[str, int] = defaultdict(int)

    def sums(self) -> Sums:
        return Sums(
            {stage: both for stage, both in sorted(self.stages.items()) if any(both)},
            len(self.jobs),
            self.attempts,
            sorted(self.tts),
            sorted(self.ttr),
            dict(sorted(self.causes.items())),
            self.infra,
            self.preempted,
            self.unsaved,
        )


def recount(store: Store, seconds: int) -> dict[_Key, Sums]:
    """What has to be held of each period of so many seconds, and of each team, model and cluster."""
    of = {
        job: tuple(str(value or "") for value in told)
        for job, *told in store.query("SELECT job, team, model, cluster FROM jobs").rows
    }
    counts: dict[_Key, _Count] = defaultdict(_Count)

    def at(job: object, time: object) -> _Count:
        assert isinstance(time, datetime)
        team, model, cluster = of.get(job, ("", "", ""))
        return counts[int(time.timestamp()) // seconds, team, model, cluster]

    for job, stage, start, us, gpu_us in store.query(
        "SELECT job, stage, start, duration_us, gpu_us FROM segments"
    ).rows:
        count = at(job, start)
        before = count.stages.get(str(stage), (0, 0))
        count.stages[str(stage)] = (before[0] + _int(us), before[1] + _int(gpu_us))
        count.jobs.add(str(job))
    for row in store.query(
        "SELECT job, start, first_batch, end, outcome, cause, tts_us, ttr_us, unsaved_us, gpus FROM attempts"
    ).rows:
        job, start, first_batch, end, outcome, cause, tts, ttr, unsaved, gpus = row
        at(job, start).attempts += 1
        if first_batch is not None and tts is not None:
            at(job, first_batch).tts.append(_int(tts))
        if first_batch is not None and ttr is not None:
            at(job, first_batch).ttr.append(_int(ttr))
        if outcome in ("failed", "preempted"):
            count = at(job, end)
            count.causes[str(cause or "")] += 1
            count.infra += cause not in ("user_code", "config")
            count.preempted += outcome == "preempted"
            count.unsaved += _int(unsaved) * _int(gpus)
    return {key: count.sums() for key, count in counts.items()}


def held(store: Store, table: str) -> dict[_Key, Sums]:
    """What a rollup holds; what is no more is left out."""
    period = "intDiv(toInt64(hour), 3600)" if table == "rollup_hours" else "toInt32(day)"
    found: dict[_Key, Sums] = {}
    told = store.query(f"SELECT {period} AS period, * FROM {table} FINAL WHERE parts > 0")
    for row in told.rows:
        f: dict[str, Any] = dict(zip(told.columns, row, strict=True))
        stages = {s: (u, g) for s, u, g in zip(f["stage"], f["stage_us"], f["stage_gpu_us"], strict=True)}
        assert f["us"] == sum(u for u, _ in stages.values())
        assert f["gpu_us"] == sum(g for _, g in stages.values())
        assert (f["effective_us"], f["gpu_effective_us"]) == stages.get("effective_training", (0, 0))
        waited = [both for stage, both in stages.items() if stage.split(".")[0] == "scheduling"]
        assert (f["waited_us"], f["gpu_waited_us"]) == (sum(u for u, _ in waited), sum(g for _, g in waited))
        found[f["period"], f["team"], f["model"], f["cluster"]] = Sums(
            stages,
            f["jobs"],
            f["attempts"],
            f["tts_us"],
            f["ttr_us"],
            dict(zip(f["cause"], f["failures"], strict=True)),
            f["infra"],
            f["preempted"],
            f["unsaved_gpu_us"],
        )
    return found


def check_rollups(store: Store) -> None:
    """Assert that the rollups are what a recount gives."""
    for table, seconds in (("rollup_hours", 3_600), ("rollup_days", 86_400)):
        found, wanted = held(store, table), recount(store, seconds)
        other = {
            key: (found.get(key), wanted.get(key)) for key in found.keys() | wanted if found.get(key) != wanted.get(key)
        }
        assert not other, f"{table} holds, and has to hold: {other}"


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
