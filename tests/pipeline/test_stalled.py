"""A worker that reads its state, and of which a rebalance drops what was fetched: Faust alone waits for ever."""

from pathlib import Path
from typing import Final

import pytest

from support.kafka import Cluster
from support.pipeline import Pipeline
from support.pipeline_feed import make_feed
from support.pipeline_programs import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

LOSSY: Final = """
import ettwatch_faust.batches as batches

real = batches.BatchConsumer._wait_next_records
dropped = set()

async def lossy(self, timeout):
    records, active = await real(self, timeout)
    first = [tp for tp in records or () if tp.topic.endswith("-changelog") and tp not in dropped]
    dropped.update(first)
    return {tp: some for tp, some in (records or {}).items() if tp not in first}, active

batches.BatchConsumer._wait_next_records = lossy
"""


def test_a_dropped_record_of_the_changelog_is_sought_again(own: Cluster, tmp_path: Path, prefix: str) -> None:
    (tmp_path / "lossy").mkdir()
    (tmp_path / "lossy" / "sitecustomize.py").write_text(LOSSY)
    feed = make_feed(5, 20)
    with Pipeline(own.bootstrap, tmp_path, prefix, workers=1) as pipeline:
        (worker,) = pipeline.workers
        feeder = pipeline.feed(feed, 6, [0.7])
        feeder.reach(0.7)
        with pipeline.worker_group() as group:  # the state is written before
            until("something is committed", lambda: group.committed() > 0, 120)
        worker.kill()
        feeder.go_on()
        worker.start(ready=False, PYTHONPATH=str(tmp_path / "lossy"))
        worker.wait_ready()
        assert "reading the state stands still" in worker.log.read_text()
        assert pipeline.finish(feed, feeder).differences == []
