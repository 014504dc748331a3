"""What runs, out of ClickHouse: events through core and writer, back as running jobs; and the command on top of it."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.commands import preempt as module
from ettwatch_app.commands.preempt import preempt
from ettwatch_clickhouse import Store, Writer, connect, migrate
from ettwatch_core import Rules, snapshot
from ettwatch_monitor.preempt import Live, Running, rank, read_live
from ettwatch_monitor.queries import Scope
from ettwatch_schemas import encode_event
from support.clickhouse import front_process
from support.story import START, Story

AT = 20_000
"""Seconds after START: now."""
NOW = START + AT * 1_000_000
EVIL = "evil \x1b[31m</b>\r\nlast"


def loop(story: Story, since: int, attempt: int = 0, position: int = 0, until: int = AT) -> Story:
    """Train 10 samples a second from `since` on, with a report each 100 s."""
    story.trains(since, position, attempt)
    for at in range(since + 10, until + 1, 100):
        story.progress(at, position + 10 * (at - since), attempt, step=at - since)
    return story


def saved(story: Story, at: float, position: int, attempt: int = 0, took: float | None = 20) -> Story:
    more = {} if took is None else {"started_ts": START + round((at - took) * 1e6)}
    return story.tell(at, "checkpoint_durable", attempt=attempt, position=position, **more)


def steady() -> Story:
    """Saves each 1,000 s; the newest holds the position of 19,000 s."""
    story = loop(Story("steady", 16).submitted(0).started(100), 1_000)
    for at in range(2_000, 19_001, 1_000):
        saved(story, at + 20, 10 * (at - 1_000))
        saved(story, at + 21, 10 * (at - 1_000), took=21)  # another rank tells it, too
    return story


def again() -> Story:
    """Failed once, came back after 700 s, and has saved nothing since."""
    story = loop(Story("again", 8).submitted(0).started(100), 1_000, until=9_900)
    for at in range(2_000, 9_001, 1_000):
        saved(story, at, 10 * (at - 1_000))
    story.ended(10_000, "failed", cause="hardware").started(10_200, 1)
    return loop(story, 10_610, 1, 80_000)


def never() -> Story:
    """Has never saved anything."""
    return loop(Story("never", 32).submitted(0).started(1_500), 2_000)


def fills() -> Iterator[Story]:
    yield from (steady(), again(), never())
    yield Story("young", 64).submitted(0).started(19_700)
    yield Story("queued", 8).submitted(0)
    yield loop(Story("over", 8).submitted(0).started(100), 1_000).trained(19_920, 190_000).ended(19_950, "succeeded")
    yield loop(Story("quiet", 8).submitted(0).started(100), 1_000, until=18_000)
    # Its last save and its publishing: the loop is over, the attempt is not.
    yield (
        saved(loop(Story("ends", 8).submitted(0).started(100), 1_000, until=19_400), 19_300, 180_000)
        .trained(19_450, 184_100)
        .phase(19_500, None, "shutdown.model_publish")
    )
    story = loop(Story("jumps", 8).submitted(0).started(100), 1_000)
    yield saved(story, 19_000, 500, took=None).progress(19_995, 10, step=30_000)
    yield loop(Story(EVIL, 8).submitted(0).started(100), 1_000)
    yield loop(Story("no-gpus", 0).submitted(0).started(100), 1_000)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with front_process(tmp_path_factory.mktemp("preempt")) as found:
        store = connect(found)
        migrate(store)
        writer = Writer(store, clock=lambda: NOW / 1e6)
        for story in fills():
            for event in story.events:
                writer.event(event, encode_event(event))
            writer.snapshot(snapshot(story.state(), Rules(lateness=None), NOW))
        writer.flush()
        store.close()
        yield found


@pytest.fixture(scope="module")
def store(url: str) -> Iterator[Store]:
    found = connect(url)
    yield found
    found.close()


@pytest.fixture(scope="module")
def live(store: Store) -> Live:
    return read_live(store, NOW)


@pytest.fixture
def jobs(live: Live) -> dict[str, Running]:
    return {job.job: job for job in live.jobs}


def test_what_holds_gpus(live: Live) -> None:
    assert {job.job for job in live.jobs} == {"steady", "again", "never", "young", "ends", "jumps", EVIL}
    assert {left.job: left.why.partition(";")[0] for left in live.left_out} == {
        "quiet": "silent",
        "no-gpus": "holds no GPUs",
    }


def test_work_above_the_newest_checkpoint(jobs: dict[str, Running]) -> None:
    """Positions up to 19,000 s are safe, the last report is of 19,910 s."""
    job = jobs["steady"]
    assert (job.gpus, job.state, job.attempt, job.notes) == (16, "training", 0, ())
    assert job.unsaved_s == pytest.approx(910, abs=1)
    assert job.seen_us == START + 19_910 * 1_000_000
    assert job.saved_us == START + 19_021 * 1_000_000
    assert (job.interval_s, job.lag_s) == (1_000, 21)
    waste = rank([job], 8, NOW).ranked[0]
    assert waste.lost_s == pytest.approx(1_000, abs=1)
    assert waste.wait_s == pytest.approx(21)


def test_it_is_what_the_end_would_discard(store: Store) -> None:
    """The same job, preempted now: the core says what was discarded."""
    for story, attempt in ((steady(), 0), (again(), 1), (never(), 0)):
        told = next(job for job in read_live(store, NOW).jobs if job.job == story.job)
        ended = story.ended(AT, "preempted", attempt).at().attempts[-1]
        assert told.unsaved_s == pytest.approx(ended.unsaved_s, rel=1e-6)


def test_its_own_recovery(jobs: dict[str, Running], live: Live) -> None:
    """From the last advance, 9,810 s, to the loop of the next attempt."""
    assert jobs["again"].recovery_s == pytest.approx(800)
    assert live.recovery_from["again"] == "1 own, 1 of team and model"
    assert jobs["steady"].recovery_s == pytest.approx(800)
    assert live.recovery_from["steady"] == "1 of team and model"
    startups = [900] * 8 + [410, 500]  # of those that are over, silent or without GPUs, too
    assert jobs["young"].startup_s == pytest.approx(sum(startups) / len(startups))


def test_no_checkpoint_of_the_attempt(jobs: dict[str, Running]) -> None:
    again, never = jobs["again"], jobs["never"]
    assert again.unsaved_s == pytest.approx(9_310, abs=1)
    assert never.unsaved_s == pytest.approx(17_910, abs=1)
    assert again.saved_us == START + 10_610 * 1_000_000
    assert again.interval_s == 1_000
    assert "no checkpoint of this attempt" in again.notes[0]
    assert [note.partition(":")[0] for note in never.notes] == [
        "no checkpoint of this attempt seen",
        "interval between checkpoints not known",
    ]


def test_a_start_up(jobs: dict[str, Running]) -> None:
    job = jobs["young"]
    assert (job.state, job.unsaved_s, job.started_us) == ("starting", 0, START + 19_700 * 1_000_000)
    waste = rank([job], 8, NOW).ranked[0]
    assert (waste.lost_s, waste.recovery_s, waste.wait_s) == (300, 0, None)


def test_after_the_loop(jobs: dict[str, Running]) -> None:
    """410 s of training above the checkpoint, and 550 s since."""
    job = jobs["ends"]
    assert job.state == "ending"
    assert rank([job], 8, NOW).ranked[0].lost_s == pytest.approx((184_100 - 180_000) / 10 + 550, abs=60)


def test_positions_that_cannot_be_compared(jobs: dict[str, Running]) -> None:
    job = jobs["jumps"]
    assert any("cannot be compared" in note for note in job.notes)
    assert rank([job], 8, NOW).ranked[0].lost_s == pytest.approx(19_000, abs=1)


def test_an_old_state_is_not_counted(store: Store) -> None:
    later = read_live(store, NOW + 3 * 3_600 * 1_000_000)
    assert later.jobs == []
    assert len(later.left_out) == 9
    assert any("3 h old" in left.why for left in later.left_out)
    trusting = read_live(store, NOW + 3 * 3_600 * 1_000_000, stale_s=4 * 3_600)
    assert len(trusting.jobs) == 7


def test_the_scope(store: Store) -> None:
    assert len(read_live(store, NOW, Scope(team="ads", cluster="c")).jobs) == 7
    assert read_live(store, NOW, Scope(team="nobody")) == Live([], [], {})


def ask(url: str, monkeypatch: pytest.MonkeyPatch, *words: str, at: int = NOW) -> Result:
    monkeypatch.setattr(module, "time", SimpleNamespace(time_ns=lambda: at * 1_000))
    return CliRunner().invoke(preempt, ["--clickhouse", url, *words])


def test_the_command_as_json(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ask(url, monkeypatch, "--gpus", "64", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["preempt"] == ["young"]
    assert told["freed_gpus"] == 64
    assert told["waste_gpu_s"] == 64 * 300
    assert [job["job"] for job in told["jobs"] if job["preempt"]] == ["young"]
    assert {left["job"] for left in told["left_out"]} == {"quiet", "no-gpus"}
    assert done.stdout == ask(url, monkeypatch, "--gpus", "64", "--format", "json").stdout


def test_the_command_waits_and_excludes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(ask(url, monkeypatch, "--gpus", "16", "--exclude", "you*", "--exclude", "ends", "--json").stdout)
    assert told["preempt"] == ["steady"]
    assert told["later"]["preempt"] == [{"job": "steady", "wait_s": pytest.approx(21)}]
    assert told["later"]["waste_gpu_s"] == pytest.approx(16 * 821)
    assert {job["job"] for job in told["jobs"] if job["excluded"]} == {"young", "ends"}
    none = json.loads(ask(url, monkeypatch, "--gpus", "16", "--exclude", "you*", "--wait", "0s", "--json").stdout)
    assert none["later"] is None


def test_the_command_as_text(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in ("60", "100", "160"):
        monkeypatch.setenv("COLUMNS", width)
        done = ask(url, monkeypatch, "--gpus", "80", "--exclude", "again")
        assert done.exit_code == 0, done.output
        assert max(map(len, done.stdout.splitlines())) <= int(width)
        assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "preempt 2 jobs: frees 80 for 80 asked for, wastes 13.3 GPU-h"
    assert lines[1].startswith("waiting 21.0 s for checkpoints: 2 jobs, frees 80, wastes ")
    head = next(i for i, line in enumerate(lines) if " state " in line)
    rows = lines[head : head + 8]
    assert [row[0] for row in rows[1:]].count("*") == 2
    assert [row[0] for row in rows[1:]].count("-") == 1
    at = rows[0].index("state")
    assert {row[at - 2 : at] for row in rows} == {"  "}
    right = rows[0].index("GPU-h") + len("GPU-h")
    assert {row[right : right + 1] for row in rows} == {" "}
    assert all(row[right - 1].isdigit() for row in rows[1:])


def test_exit_codes(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    short = ask(url, monkeypatch, "--gpus", "9999")
    assert short.exit_code == 1
    assert short.stdout.startswith("cannot free 9,999 GPUs: 7 jobs that may be preempted hold 144")
    spared = ask(url, monkeypatch, "--gpus", "8", "--exclude-team", "ads", "--json")
    assert (spared.exit_code, json.loads(spared.stdout)["enough"]) == (1, False)
    old = ask(url, monkeypatch, "--gpus", "8", at=NOW + 10**11)
    assert old.exit_code == 1
    assert "not counted" in old.stdout
    nobody = ask(url, monkeypatch, "--gpus", "8", "--team", "nobody")
    assert (nobody.exit_code, nobody.stdout) == (2, "")
    for words in (
        ["--gpus", "0"],
        ["--gpus", "many"],
        [],
        ["--gpus", "8", "--wait", "soon"],
        ["--gpus", "8", "--stale", "-1s"],
        ["--gpus", "8", "--data", str(tmp_path)],
    ):
        assert ask(url, monkeypatch, *words).exit_code == 2
    assert CliRunner().invoke(preempt, ["--gpus", "8", "--data", str(tmp_path)]).exit_code == 2
    assert CliRunner().invoke(preempt, ["--gpus", "8", "--clickhouse", "http://127.0.0.1:9"]).exit_code == 2
    assert CliRunner().invoke(preempt, ["--gpus", "8", "--clickhouse", "nonsense"]).exit_code == 2


def test_more_gpus_never_waste_less(jobs: dict[str, Running]) -> None:
    wastes = [rank(jobs.values(), gpus, NOW).gpu_ms for gpus in range(8, 145, 8)]
    assert all(less <= more for less, more in pairwise(wastes))
