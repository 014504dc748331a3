"""The oldest Kafka that is supported; all other tests run on the newest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.kafka import Cluster
from support.pipeline_faults import FAULTS
from support.pipeline_runs import Size, report, run_fault

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

OLDEST: Final = "3.9.1"
KILLED: Final = next(fault for fault in FAULTS if fault.name == "worker_killed")


@pytest.fixture
def oldest() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ETTWATCH_TEST_KAFKA_VERSION", OLDEST)
        with Cluster() as cluster:
            yield cluster


def test_on_the_oldest_kafka_a_killed_worker_changes_no_row(oldest: Cluster, tmp_path: Path, prefix: str) -> None:
    run = run_fault(KILLED, oldest, tmp_path, prefix, Size(40, feed_s=5, rounds=1, pause_s=2, drain_s=180), seed=3)
    assert run.comparison.differences == [], report(run)
    assert run.comparison.events == run.feed.events > 3_000


def test_the_page_names_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text("utf-8")
    assert f"Kafka {OLDEST.rpartition('.')[0]} to " in page
