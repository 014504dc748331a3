"""Plans: the same wherever they are made, balanced, read back as they were written, refused when they cannot be."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_trainer.remedies.communication import (
    CountCalls,
    Plan,
    PlanError,
    Table,
    local_metadata,
    make_plan,
    share_plan,
)

pytestmark = pytest.mark.torch

SIZES = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 64)), max_size=12)


def tables(sizes: list[tuple[int, int]]) -> list[Table]:
    return [Table(f"t{number}", rows, dim) for number, (rows, dim) in enumerate(sizes)]


def loads(plan: Plan) -> list[int]:
    return [sum(table.size for table in plan.tables_of(rank)) for rank in range(plan.world)]


@given(SIZES, st.integers(1, 5), st.randoms())
def test_a_plan_does_not_depend_on_the_order_of_the_tables(sizes: Any, world: int, chance: Any) -> None:
    given_tables = tables(sizes)
    plan = make_plan(given_tables, world)
    mixed = list(given_tables)
    chance.shuffle(mixed)
    other = make_plan(mixed, world)
    assert {table.name: plan.rank_of(table.name) for table in given_tables} == {
        table.name: other.rank_of(table.name) for table in given_tables
    }
    assert plan == make_plan(given_tables, world)


@given(st.lists(st.tuples(st.integers(1, 30), st.just(1)), min_size=1, max_size=6), st.integers(1, 3))
def test_no_rank_holds_more_than_four_thirds_of_the_best(sizes: Any, world: int) -> None:
    given_tables = tables(sizes)
    every_way = itertools.product(range(world), repeat=len(given_tables))
    best = min(max(loads(Plan(world, tuple(given_tables), way))) for way in every_way)
    assert 3 * max(loads(make_plan(given_tables, world))) <= 4 * best


@given(SIZES, st.integers(1, 5))
def test_a_plan_is_read_back_as_it_was_written(sizes: Any, world: int) -> None:
    plan = make_plan(tables(sizes), world)
    read = Plan.from_json(plan.to_json())
    assert read == plan
    assert read.fingerprint == plan.fingerprint


def test_the_fingerprint_tells_plans_apart() -> None:
    some = tables([(10, 4), (20, 4), (30, 4)])
    plans = [make_plan(some, 1), make_plan(some, 2), make_plan(some[:2], 2), make_plan(tables([(10, 4)]), 2)]
    assert len({plan.fingerprint for plan in plans}) == len(plans)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no plan"),
        ("[]", "no plan"),
        ('{"version":1}', "no plan"),
        ('{"version":2,"world":1,"tables":[]}', "version 2"),
        ('{"version":1,"world":0,"tables":[]}', "not 0"),
        ('{"version":1,"world":1,"tables":[["a",1,1,1]]}', "rank 1"),
        ('{"version":1,"world":1,"tables":[["a",1,1,0],["a",1,1,0]]}', "twice: a"),
        ('{"version":1,"world":1,"tables":[["a",0,1,0]]}', "rows is 0"),
        ('{"version":1,"world":1,"tables":[["a",true,1,0]]}', "rows is True"),
        ('{"version":1,"world":1,"tables":[["a",1]]}', "no plan"),
        ('{"version":1,"world":1,"tables":7}', "no plan"),
    ],
)
def test_a_bad_plan_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Plan.from_json(text)


LEAVES = st.none() | st.booleans() | st.integers() | st.text()
NAMES = st.sampled_from(["version", "world", "tables"])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner))


@given(JSON)
def test_whatever_json_is_read_only_a_plan_error_comes_out(value: Any) -> None:
    try:
        Plan.from_json(json.dumps(value))
    except PlanError:
        return


def test_each_table_is_local_on_one_rank() -> None:
    plan = make_plan(tables([(10, 4), (20, 4), (30, 4), (5, 8)]), 3)
    on = [local_metadata(plan, rank) for rank in range(3)]
    for table in plan.tables:
        assert [bool(ranks[table.name].local) for ranks in on].count(True) == 1
        assert len({ranks[table.name].shards for ranks in on}) == 1
    with pytest.raises(PlanError, match="no rank 3"):
        local_metadata(plan, 3)


def test_alone_nothing_is_sent_and_a_missing_plan_is_told() -> None:
    plan = make_plan(tables([(10, 4)]), 1)
    with CountCalls() as count:
        assert share_plan(plan, tables=plan.tables) is plan
    assert count.total == 0
    with pytest.raises(PlanError, match="make_plan"):
        share_plan(None)
    with pytest.raises(PlanError, match="2 ranks and the job has 1"):
        share_plan(make_plan(tables([(10, 4)]), 2))
