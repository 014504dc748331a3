"""The view `owners` in ClickHouse: replaced as a whole, and kept as the file is while `ettwatch up` runs."""

import io
from itertools import product
from pathlib import Path

import pytest

from ettwatch_app.owners import OwnersWatch, find_owners
from ettwatch_app.ownertable import push_owners
from ettwatch_app.up.log import Log
from ettwatch_app.up.owners import OwnersKeeper
from ettwatch_clickhouse import Store, StoreUnavailable
from ettwatch_core.ownership import Owners, parse_owners
from ettwatch_schemas import COMPONENTS, STAGES
from support.clickhouse import FaultyStore, after, before

NOW = 1_790_000_000_000_000
SECOND = 1_000_000
TEXT = """\
owners:
  trainer_init: {system: start-up, team: trainer, contact: "#trainer"}
  trainer_init.checkpoint_load:
    team: storage
    overrides: [{cluster: eu, team: storage-eu}, {cluster: eu, model: big, team: big}, {model: big, team: models}]
  shutdown: {overrides: [{model: big, team: models}]}
"""
# The owner of a stage of a job, by the view alone.
ASK = """\
SELECT argMax(team, (length(stage_prefix), cluster != '', model != ''))
FROM owners
WHERE startsWith({stage:String} || '.', stage_prefix || '.')
  AND cluster IN ('', {cluster:String}) AND model IN ('', {model:String})
"""


def teams(store: Store) -> list[object]:
    return [row[0] for row in store.query("SELECT team FROM owners ORDER BY stage_prefix, cluster, model").rows]


def owned_by(team: str) -> Owners:
    return parse_owners(f"owners: {{shutdown: {{team: {team}}}, scheduling: {{team: {team}}}}}", "owners.yaml")


def test_the_view_shows_the_rules_as_they_are(store: Store) -> None:
    assert push_owners(store, parse_owners(TEXT, "owners.yaml"), NOW)
    rows = store.query("SELECT * EXCEPT loaded FROM owners ORDER BY stage_prefix, cluster, model").rows
    load = "trainer_init.checkpoint_load"
    assert rows == [
        ("shutdown", "", "big", "", "models", "", "owners.yaml"),
        ("trainer_init", "", "", "start-up", "trainer", "#trainer", "owners.yaml"),
        (load, "", "", "", "storage", "", "owners.yaml"),
        (load, "", "big", "", "models", "", "owners.yaml"),
        (load, "eu", "", "", "storage-eu", "", "owners.yaml"),
        (load, "eu", "big", "", "big", "", "owners.yaml"),
    ]


def test_sql_finds_the_owner_that_python_finds(store: Store, tmp_path: Path) -> None:
    for owners in (parse_owners(TEXT, "owners.yaml"), find_owners(tmp_path / "none", {})):
        push_owners(store, owners, NOW)
        stages = (*COMPONENTS, *STAGES, "trainer_init.checkpoint_load.read", "trainer_init.checkpoint_loader")
        for stage, cluster, model in product(stages, ("", "eu", "us"), ("", "big")):
            asked = {"stage": stage, "cluster": cluster, "model": model}
            owner = owners.of(stage, cluster or None, model or None)
            assert store.query(ASK, asked).rows[0][0] == (owner.team if owner else "")


def test_it_is_replaced_as_a_whole_and_only_where_it_changed(store: Store) -> None:
    assert push_owners(store, parse_owners(TEXT, "owners.yaml"), NOW)
    assert not push_owners(store, parse_owners(TEXT, "elsewhere.yaml"), NOW + 1)
    assert push_owners(store, owned_by("new"), NOW + 2)
    assert teams(store) == ["new", "new"]
    assert push_owners(store, parse_owners(TEXT, "owners.yaml"), NOW + 3)
    assert len(teams(store)) == 6


def test_a_clock_that_is_behind_pushes_all_the_same(store: Store) -> None:
    push_owners(store, owned_by("fast"), NOW + 3_600 * SECOND)
    assert push_owners(store, owned_by("slow"), NOW)
    assert teams(store) == ["slow", "slow"]


def test_two_who_push_at_once_leave_the_rules_of_one(store: Store) -> None:
    class Late:
        """Reads before the other writes, writes after it."""

        def __init__(self) -> None:
            self.rows = store.query("SELECT 1 WHERE 0")

        def query(self, sql: str, params: object = None) -> object:
            return self.rows

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

    late = Late()
    push_owners(store, owned_by("one"), NOW)
    push_owners(late, owned_by("two"), NOW)  # type: ignore[arg-type]
    assert teams(store) in (["one", "one"], ["two", "two"])


def test_an_answer_that_was_lost_doubles_nothing(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.plan = [None, after(StoreUnavailable("away"))]
    with pytest.raises(StoreUnavailable):
        push_owners(faulty, owned_by("a"), NOW)
    assert not push_owners(faulty, owned_by("a"), NOW + 1)
    assert teams(store) == ["a", "a"]


def test_up_keeps_the_view_as_the_file_is(store: Store, tmp_path: Path) -> None:
    file, said, now = tmp_path / "owners.yaml", io.StringIO(), [NOW]
    faulty = FaultyStore(store)
    keeper = OwnersKeeper(OwnersWatch(file, {}), faulty, Log(said, "text"), lambda: now[0])

    def tend(seconds: int = 10) -> str:
        now[0] += seconds * SECOND
        said.seek(0)
        said.truncate()
        keeper.tend()
        return said.getvalue()

    assert "rules of ownership from the built-in owners" in tend()
    assert "trainer" in teams(store)
    assert tend() == ""
    file.write_text("owners: {shutdown: {team: mine, overrides: [{cluster: c, team: mine}]}}")
    told = tend()
    assert "remove it" in told
    assert "took in 2 rules" in told
    assert teams(store) == ["mine", "mine"]

    file.write_text("owners: {shutdwn: {team: x}}")
    assert "the owners before it go on to count" in tend()
    assert tend() == ""
    assert teams(store) == ["mine", "mine"]

    faulty.plan = [before(StoreUnavailable("ClickHouse is away"))]
    file.write_text("owners: {shutdown: {team: other}}")
    assert "are not in ClickHouse yet: ClickHouse is away" in tend()
    assert tend() == ""  # it is not asked at every round
    assert "took in 1 rule" in tend(30)
    assert teams(store) == ["other"]


def test_up_that_starts_with_a_wrong_file_says_so_and_goes_on(store: Store, tmp_path: Path) -> None:
    file, said = tmp_path / "owners.yaml", io.StringIO()
    file.write_text("owners: [")
    keeper = OwnersKeeper(OwnersWatch(file, {}), store, Log(said, "text"), lambda: NOW)
    keeper.tend()
    assert "no owners are known" in said.getvalue()
    assert teams(store) == []
