"""`ettwatch advise` and `ettwatch top`: files and a ClickHouse in, text and JSON out."""

import json
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner
from rich.console import Console

from ettwatch_app.commands.advise import advise
from ettwatch_app.commands.top import top
from ettwatch_app.render.top import draw_top
from ettwatch_clickhouse import Store, StoreUnavailable, Table, connect
from ettwatch_core.ownership import Owners
from ettwatch_monitor.advice import About, AdviceError, NoJobError, Replays, advice_of, read_fleet, what_if_of
from ettwatch_monitor.advice.words import parse_change
from ettwatch_monitor.queries import Scope
from ettwatch_monitor.top import look
from support.monitor import FROM, Served, served

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.jsonl"))
WORKED = str(next(path for path in CASES if "worked" in path.name))
NEVER = 4_000_000_000_000_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("advice")) as found:
        yield found


@pytest.fixture(scope="module")
def store(running: Served) -> Iterator[Store]:
    found = connect(running.sql)
    yield found
    found.close()


def test_advice_from_files() -> None:
    done = CliRunner().invoke(advise, [*map(str, CASES), "--format", "json"])
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert told["sample"]["jobs"] == len(CASES)
    assert [entry["gpu_h_week"] for entry in told["advice"]] == sorted(
        (entry["gpu_h_week"] for entry in told["advice"]), reverse=True
    )
    text = CliRunner().invoke(advise, [*map(str, CASES), "--limit", "2"])
    assert text.exit_code == 0
    assert "2. " in text.stdout
    assert "3. " not in text.stdout


def test_what_if_from_files() -> None:
    done = CliRunner().invoke(advise, [WORKED, "--what-if", "shutdown.model_publish x 0", "--format", "json"])
    told = json.loads(done.stdout)
    assert told["before"]["total_gpu_h"] - told["after"]["total_gpu_h"] == pytest.approx(1800 * 8 / 3600)
    assert told["saved_gpu_h_week"] * told["weeks"] == pytest.approx(4, rel=1e-3)
    text = CliRunner().invoke(advise, [WORKED, "--what-if", "detection = 5s"])
    assert "come back" in text.stdout


def test_advice_for_one_job_from_files() -> None:
    job = json.loads(Path(WORKED).read_text().splitlines()[0])["job"]
    done = CliRunner().invoke(advise, [*map(str, CASES), "--job", job, "--format", "json"])
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert told["asked"]["job"] == job
    assert told["sample"]["jobs"] == told["base"]["jobs"] == 1
    assert {each["job"] for entry in told["advice"] for each in entry["jobs_named"]} == {job}
    text = CliRunner().invoke(advise, [*map(str, CASES), "--job", job])
    assert text.stdout.startswith(f"job {job}\n")
    assert "Why low confidence: " in text.stdout
    assert "a week" not in text.stdout.splitlines()[4], "one job comes once"


def test_advice_for_one_stage_from_files() -> None:
    done = CliRunner().invoke(advise, [*map(str, CASES), "--stage", "shutdown", "--format", "json"])
    told = json.loads(done.stdout)
    assert {entry["remedy"] for entry in told["advice"]} == {"publish_off_gpus"}
    assert told["of_stage"]["after_gpu_h"] < told["of_stage"]["lost_gpu_h"]
    text = CliRunner().invoke(advise, [*map(str, CASES), "--stage", "shutdown"])
    assert "shutdown: " in text.stdout


def test_exit_codes(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    assert CliRunner().invoke(advise, [WORKED, str(bad)]).exit_code == 1
    assert CliRunner().invoke(advise, [str(bad)]).exit_code == 2
    assert CliRunner().invoke(advise, [str(tmp_path / "none")]).exit_code == 2
    assert CliRunner().invoke(advise, [WORKED, "--what-if", "nonsense"]).exit_code == 2
    assert CliRunner().invoke(advise, [WORKED, "--data", str(tmp_path)]).exit_code == 2
    assert CliRunner().invoke(advise, ["--data", str(tmp_path)]).exit_code == 2
    assert CliRunner().invoke(advise, [WORKED, "--job", "nobody"]).exit_code == 2
    assert CliRunner().invoke(advise, [WORKED, "--stage", "lunch"]).exit_code == 2
    assert CliRunner().invoke(advise, [WORKED, "--job", "a", "--team", "b"]).exit_code == 2
    assert CliRunner().invoke(advise, [WORKED, "--stage", "shutdown", "--what-if", "detection = 5s"]).exit_code == 2
    assert CliRunner().invoke(top, ["--data", str(tmp_path)]).exit_code == 2


def test_a_database_gives_what_its_events_give(store: Store) -> None:
    told = advice_of(store, 0, NEVER, Owners("", ()))
    assert told["replay_error_pct"] == pytest.approx(0, abs=2)
    jobs = store.query("SELECT sum(gpu_e2e_s) / 3600 FROM jobs WHERE attempts > 0").rows[0][0]
    base = told["base"]
    assert isinstance(base, dict)
    assert base["total_gpu_h"] == pytest.approx(float(str(jobs)), rel=0.02)
    then = what_if_of(store, 0, NEVER, {"changes": [{"stage": "shutdown", "factor": 1}]})
    assert then["jobs_touched"] == 0
    with pytest.raises(AdviceError):
        what_if_of(store, 5, 5, {"changes": ["detection = 5s"]})


def test_the_api_answers_for_a_job_a_stage_and_an_owner(running: Served, store: Store) -> None:
    job, team = store.query("SELECT job, ifNull(team, '') FROM jobs WHERE attempts > 1 AND model != '' LIMIT 1").rows[0]
    told = running.plain.get("advice", {"job": job})
    assert told["asked"] == {"team": None, "model": None, "cluster": None, "owner": None, "stage": None, "job": job}
    assert told["base"]["jobs"] == 1
    assert {entry["team"] for entry in told["advice"]} <= {team or None}
    direct = advice_of(store, 5, 4, Owners("", ()), about=About(job=str(job)))
    assert direct["base"] == told["base"]
    whole = {"from": FROM, "to": FROM + 3_600_000_000, "stage": "shutdown", "owner": "nobody-here"}
    assert running.plain.get("advice", whole)["advice"] == []
    assert running.plain.ask("advice", {"job": "no-such-job"}).status == 404
    assert running.plain.ask("advice", {"stage": "lunch"}).status == 422
    with pytest.raises(NoJobError):
        advice_of(store, 0, NEVER, Owners("", ()), about=About(job="no-such-job"))


def test_an_empty_team_is_those_that_name_none(store: Store) -> None:
    fleet, _ = read_fleet(store, 0, NEVER, team="")
    assert {case.life.team for case in fleet.cases} <= {None}


def test_a_sample_stands_for_all(store: Store) -> None:
    whole, all_ = read_fleet(store, 0, NEVER)
    part, some = read_fleet(store, 0, NEVER, most=1)
    assert some.jobs < all_.jobs == some.of_jobs
    sums = [sum(c.weight * c.summary.gpu_e2e_s for c in fleet.cases) for fleet in (whole, part)]
    assert sums[1] == pytest.approx(sums[0], rel=0.02)


class _Closing:
    """A store that is closed while its fleet is being replayed."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.closed = False

    @property
    def query(self) -> Callable[..., Table]:
        if self.closed:
            raise StoreUnavailable("closed")
        return self._inner.query


def test_nobody_replays_for_a_monitor_that_ends(store: Store) -> None:
    closing = _Closing(store)
    fleet, _ = read_fleet(cast(Store, closing), 0, NEVER)
    replays = Replays(fleet)
    closing.closed = True
    with pytest.raises(StoreUnavailable):
        Replays(fleet)
    with pytest.raises(StoreUnavailable):
        replays.under(parse_change({"stage": "shutdown", "factor": 0.5}))


def test_the_fleet_in_a_terminal(running: Served, store: Store) -> None:
    done = CliRunner().invoke(top, ["--clickhouse", running.sql, "--once", "--hours", "8000"])
    assert done.exit_code == 0, done.output
    assert "ETT" in done.stdout
    seen = look(store, Owners("", ()), 1_800_000_000_000_000, 8_000, Scope(), "team", "-lost")
    for width, height in ((40, 10), (80, 24), (200, 60)):
        console = Console(file=StringIO(), width=width, height=height, force_terminal=False)
        console.print(draw_top(seen, width, height, "the database\x1b[2J is away"))
        assert isinstance(console.file, StringIO)
        lines = console.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        assert "\x1b" not in console.file.getvalue()
