"""How other jobs of a model started, whether code was found compiled, and on which hosts ranks ran."""

import json
from collections.abc import Iterator
from statistics import median
from typing import Any, Final, cast
from zlib import crc32

import pytest

from ettwatch_clickhouse import Store, Writer, migrate, open_embedded
from ettwatch_core import JobState, Rules, apply, snapshot
from ettwatch_core.ownership import Owners
from ettwatch_monitor.api.shapes import UsualStart
from ettwatch_monitor.queries import Span, job_detail, timeline, usual_start
from ettwatch_schemas import decode_event, encode_event
from support.monitor import FROM, TO, Served

SECOND: Final = 1_000_000
HOUR: Final = 3_600 * SECOND
AT: Final = 1_790_000_000 * SECOND // HOUR * HOUR
SPAN: Final = Span(AT, AT + 24 * HOUR)
CACHES: Final = ("hit", "miss", "hit", "", "miss")


def put(store: Store, job: str, told: list[dict[str, Any]]) -> None:
    """Write the events of a job, as the pipeline would."""
    writer = Writer(store, clock=lambda: AT / SECOND)
    state = JobState(job)
    for number, one in enumerate(told):
        event = decode_event(json.dumps({"v": 1, "id": f"{job}-{number}", "job": job, **one}))
        apply(state, event, Rules())
        writer.event(event, encode_event(event))
    writer.snapshot(snapshot(state, Rules()))
    writer.flush()


def started(begin: int, compile_s: int, cache: str = "", model: str = "ranker", trains: bool = True) -> Any:
    """A job that waits 5 s, compiles, loads data for 10 s, trains and fails; a second attempt starts in 3 s."""

    def at(seconds: float, attempt: int | None = 0, **more: object) -> dict[str, Any]:
        return {"ts": begin + round(seconds * SECOND), **({} if attempt is None else {"attempt": attempt}), **more}

    ready = 5 + compile_s
    attrs: dict[str, Any] = {"attrs": {"cache": cache}} if cache else {}
    told = [
        at(0, None, kind="job_submitted", model=model, gpus=8),
        at(5, kind="attempt_started", gpus=8),
        at(5, kind="phase_started", phase="pt2_compilation.inductor", span="c"),
        at(ready, kind="phase_ended", span="c", **attrs),
        at(ready, kind="phase_started", phase="trainer_init.get_first_batch_data", span="d"),
    ]
    if not trains:
        return [*told, at(ready + 5, kind="attempt_ended", outcome="failed", cause="user_code")]
    begun = ready + 10
    return [
        *told,
        at(begun, kind="phase_ended", span="d"),
        at(begun, kind="training_started", position=0, step=0, report_every_s=60),
        at(begun + 50, kind="progress", position=50, step=5),
        # A recompilation in the loop is no part of a start, and neither is what a later attempt finds.
        at(begun + 50, kind="phase_started", phase="pt2_compilation.recompile", span="r"),
        at(begun + 55, kind="phase_ended", span="r", attrs={"cache": "miss"}),
        at(begun + 60, kind="attempt_ended", outcome="failed", cause="network"),
        at(begun + 61, 1, kind="attempt_started", gpus=8),
        at(begun + 61, 1, kind="phase_started", phase="pt2_compilation.inductor", span="c"),
        at(begun + 64, 1, kind="phase_ended", span="c", attrs={"cache": "miss"}),
        at(begun + 64, 1, kind="training_started", position=50, step=5, report_every_s=60),
        at(begun + 90, 1, kind="progress", position=90, step=9),
        at(begun + 91, 1, kind="attempt_ended", outcome="succeeded"),
        at(begun + 91, None, kind="job_ended", outcome="succeeded"),
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_embedded(tmp_path_factory.mktemp("usual") / "clickhouse")
    migrate(opened)
    for number, cache in enumerate(CACHES):
        put(opened, f"other-{number}", started(AT + number * HOUR, 10 * (number + 1), cache))
    put(opened, "slow", started(AT + 6 * HOUR, 300, "miss"))
    put(opened, "before", started(AT - HOUR, 1))
    put(opened, "never", started(AT + HOUR, 1, trains=False))
    put(opened, "another", started(AT + HOUR, 1, model="small"))
    put(opened, "nameless", [one | {"model": None} for one in started(AT + HOUR, 1)[:1]] + started(AT + HOUR, 1)[1:])
    for number, compile_s in enumerate((0, 20, 90)):
        put(opened, f"mixed-{number}", started(AT + number * HOUR, compile_s, model="mixed"))
    put(opened, "ranks", ranks())
    yield opened
    opened.close()


def asked(store: Store, job: str, span: Span = SPAN) -> UsualStart:
    found = usual_start(store, job, span)
    assert found is not None
    return found


def test_what_is_usual_are_the_first_starts_of_the_other_jobs_of_the_model_in_the_window(store: Store) -> None:
    told = asked(store, "slow")
    assert (told.model, told.starts, told.tts_p50_s) == ("ranker", 5, 40.0)
    assert told.stages == {
        "pt2_compilation.inductor": 30.0,
        "scheduling": 5.0,
        "trainer_init.get_first_batch_data": 10.0,
    }
    assert (told.warm, told.cold) == (2, 2)
    assert told.caches == {"pt2_compilation.inductor": "cold"}
    assert told.middle is not None
    assert (told.middle.job, told.middle.tts_s, told.middle.gpus) == ("other-2", 40.0, 8)
    assert [one.job for one in told.recent] == ["other-4", "other-3", "other-2", "other-1", "other-0"]


def test_a_job_is_not_beside_itself_and_a_stage_that_others_lack_counts_as_nothing(store: Store) -> None:
    told = asked(store, "other-0", Span(AT + 2 * HOUR, AT + 5 * HOUR))
    assert {one.job for one in told.recent} == {"other-2", "other-3", "other-4"}
    assert told.caches == {"pt2_compilation.inductor": "warm"}
    # Of two others one compiled, for 20 s, and one did not at all.
    assert asked(store, "mixed-2").stages["pt2_compilation.inductor"] == 10.0


@pytest.mark.parametrize(("job", "model"), [("another", "small"), ("nameless", None)])
def test_where_there_is_nobody_else_nothing_is_usual(store: Store, job: str, model: str | None) -> None:
    told = asked(store, job)
    assert (told.model, told.starts, told.tts_p50_s, told.stages) == (model, 0, None, {})
    assert (told.middle, told.recent, told.warm, told.cold) == (None, [], 0, 0)


def test_a_job_that_never_trained_has_its_own_start_so_far(store: Store) -> None:
    assert asked(store, "never").starts == 6
    assert asked(store, "never").caches == {}
    assert usual_start(store, "nowhere", SPAN) is None


def ranks() -> list[dict[str, Any]]:
    """Three ranks start, the last one late; in the loop, on a host that is another by now."""
    told = [
        {"kind": "attempt_started", "attempt": 0, "ts": AT, "gpus": 24, "source": "launcher", "host": "the-launcher"}
    ]
    for rank, end in ((0, 20), (8, 21), (16, 50)):
        who = {"attempt": 0, "rank": rank, "span": f"s{rank}"} | ({"host": f"h{rank}"} if rank != 8 else {})
        told.append({"kind": "phase_started", "ts": AT + SECOND, "phase": "trainer_init.device_init", **who})
        told.append({"kind": "phase_ended", "ts": AT + end * SECOND, **who})
    told.append({"kind": "training_started", "attempt": 0, "ts": AT + 60 * SECOND, "position": 0, "step": 0})
    told.append({"kind": "progress", "attempt": 0, "ts": AT + 90 * SECOND, "position": 9, "step": 9})
    for rank, end in ((0, 101), (16, 110)):
        who = {"attempt": 0, "rank": rank, "span": f"t{rank}", "host": "elsewhere"}
        save = "wasted_training.checkpoint_save"
        told.append({"kind": "phase_started", "ts": AT + 100 * SECOND, "phase": save, **who})
        told.append({"kind": "phase_ended", "ts": AT + end * SECOND, **who})
    return told


def test_the_host_of_the_last_rank_is_the_one_that_its_start_up_told(store: Store) -> None:
    told = job_detail(store, Owners("none", ()), "ranks")
    drawn = timeline(store, "ranks")
    assert told is not None
    assert drawn is not None
    late = [(one.phase, one.last_rank, one.last_host, one.behind_s) for one in told.stragglers]
    assert late == [
        ("trainer_init.device_init", 16, "h16", 29.0),
        ("wasted_training.checkpoint_save", 16, "h16", 9.0),
    ]
    assert {(one.phase, one.last_host) for one in drawn.phases} == {(phase, host) for phase, _, host, _ in late}
    # Of one rank nobody said where it is; of the launcher's host nobody asked.
    assert [one.hosts for one in told.attempts] == [["h0", "h16"]]
    one_rank = job_detail(store, Owners("none", ()), "slow")
    assert one_rank is not None
    assert [one.hosts for one in one_rank.attempts] == [[], []]


def test_over_a_fleet_each_rank_is_where_it_said(fleet: Served) -> None:
    seen = 0
    for row in fleet.plain.get("jobs", {"size": 500})["jobs"]:
        name = row["job"]
        if not name.isascii() or any(c in name for c in ' \r\n<>"?/%'):
            continue
        for one in fleet.plain.get(f"jobs/{name}")["stragglers"]:
            if one["last_host"] is not None:
                seen += 1
                assert one["last_host"] == f"gpu-{(crc32(name.encode()) + 5 * one['last_rank']) % 12:02d}"
        if seen > 20:
            return
    raise AssertionError("too few ranks were last")


def test_over_a_fleet_it_is_the_median_of_the_timelines_of_the_others(fleet: Served) -> None:
    window = {"from": FROM, "to": TO}
    rows = [one for one in fleet.plain.get("jobs", {"size": 500, "sort": "-t0"})["jobs"] if one["tts_s"] is not None]
    models = {one["model"] for one in rows if one["model"]}
    model = max(sorted(models), key=lambda name: sum(one["model"] == name for one in rows))
    ours = [one for one in rows if one["model"] == model and one["job"].isascii() and FROM <= one["t0_us"] < TO]
    mine, others = ours[0], ours[1:]
    assert len(others) > 3
    told = fleet.plain.get(f"jobs/{mine['job']}/usual", window)
    assert told["starts"] == len(others)
    assert told["tts_p50_s"] == median(one["tts_s"] for one in others)
    spent: list[dict[str, float]] = []
    for one in others:
        drawn = fleet.plain.get(f"jobs/{one['job']}/timeline")
        until = min(mark["at_us"] for mark in drawn["marks"] if mark["kind"] == "first_batch")
        of: dict[str, float] = {}
        for part in drawn["segments"]:
            seconds = (min(part["end_us"], until) - part["start_us"]) / 1e6
            if seconds > 0:
                of[part["stage"]] = of.get(part["stage"], 0.0) + seconds
        spent.append(of)
    wanted = {name: median(of.get(name, 0.0) for of in spent) for of in spent for name in of}
    assert told["stages"] == pytest.approx(wanted)


def test_who_asks_for_a_job_that_is_not_there_is_told_so(fleet: Served) -> None:
    assert fleet.plain.ask("jobs/worked-exampel/usual").status == 404
    assert "worked-example" in cast(str, fleet.plain.ask("jobs/worked-exampel/usual").json["error"])
    assert fleet.plain.ask("jobs/worked-example/usual", {"from": 2, "to": 1}).status == 422
    assert fleet.guarded.ask("jobs/worked-example/usual").status == 401
