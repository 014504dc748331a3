"""Whatever happens on the way, the rows are what the same events give by themselves. Small runs; scripts/faults.py has
the large ones."""

from pathlib import Path
from typing import Final

import pytest

from support.kafka import Cluster
from support.pipeline_faults import FAULTS, Disturbance
from support.pipeline_runs import Size, report, run_fault

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

SIZE: Final = Size(jobs=60, feed_s=8, rounds=1, pause_s=3, drain_s=180)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_rows_are_what_replay_says(
    fault: Disturbance, request: pytest.FixtureRequest, tmp_path: Path, prefix: str
) -> None:
    cluster: Cluster = request.getfixturevalue("own" if fault.brokers == 1 else "three")
    run = run_fault(fault, cluster, tmp_path, prefix, SIZE, seed=7)
    assert run.comparison.differences == [], report(run)
    assert run.comparison.events == run.feed.events > 5_000
    assert run.comparison.jobs == len(run.feed.told) > SIZE.jobs
    assert run.comparison.rows > 20 * SIZE.jobs
    assert run.comparison.replayed > SIZE.jobs / 2
    assert run.comparison.letters == run.feed.poison
    assert (run.feed.poison > 10) == (fault.name == "poison")
