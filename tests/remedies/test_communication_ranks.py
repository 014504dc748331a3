"""Two real ranks: one broadcast brings the plan, and nothing else is said."""

from typing import Any

import pytest

from ettwatch_trainer.remedies.communication import make_plan
from support.remedies_communication import TABLES, everything
from support.remedies_ranks import on_ranks

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def ranks() -> list[dict[str, Any]]:
    return on_ranks(2, everything)


def test_one_broadcast_brings_the_plan_to_every_rank(ranks: list[dict[str, Any]]) -> None:
    for saw in ranks:
        assert saw["shared"] == {"plan": make_plan(TABLES, 2), "calls": {"broadcast_": 1}, "groups": 0}


def test_metadata_is_built_without_a_word_and_equals_what_is_gathered(ranks: list[dict[str, Any]]) -> None:
    for saw in ranks:
        metadata = saw["metadata"]
        assert metadata["local"] == metadata["gathered"]
        assert list(metadata["local"]) == [table.name for table in TABLES]
        assert metadata["locally"] == 0
        assert metadata["asking"] == 2 * len(TABLES), "the counter does not see the gathers, so it proves nothing"


def test_a_plan_that_is_missing_or_for_another_job_is_an_error_on_every_rank(ranks: list[dict[str, Any]]) -> None:
    for saw in ranks:
        assert "rank 0 has no plan" in saw["refused"]["missing"]
        assert "3 ranks and the job has 2" in saw["refused"]["world"]
        assert "has ['t0'] of its own" in saw["refused"]["tables"]
        assert saw["refused"]["equal"] == "shared"


def test_a_rank_with_another_plan_says_so(ranks: list[dict[str, Any]]) -> None:
    assert ranks[0]["refused"]["other"] == "shared"
    assert "rank 1 has plan" in ranks[1]["refused"]["other"]


def test_a_plan_that_does_not_fit_takes_one_broadcast_more(ranks: list[dict[str, Any]]) -> None:
    for saw in ranks:
        assert saw["large"] == {"equal": True, "calls": {"broadcast_": 2}}


def test_a_group_is_made_once(ranks: list[dict[str, Any]]) -> None:
    for saw in ranks:
        assert saw["groups"] == {"world": True, "again": True, "apart": True, "made": 2, "kept": 2}


def test_rank_zero_goes_first_and_nobody_waits_for_one_that_failed(ranks: list[dict[str, Any]]) -> None:
    zero, one = (saw["first"] for saw in ranks)
    assert (zero["first"], one["first"]) == (True, False)
    assert one["began"] >= zero["ended"]
    assert (zero["failed"], one["failed"]) == (True, False)
