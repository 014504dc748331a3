"""Real processes, one after the other, each with an empty folder of its own: what one has compiled the next finds."""

import json
from pathlib import Path

import pytest

from support.remedies_caches import compile_with

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def test_what_one_process_compiled_the_next_need_not(tmp_path: Path) -> None:
    store, spool = tmp_path / "store", tmp_path / "spool"
    cold = compile_with(store, tmp_path / "one", spool=spool, spoil=True)
    assert not cold["hit"]
    assert "archive is not taken" in cold["reason"]
    assert cold["saved"], cold["save_reason"]
    assert cold["built"] >= 2, "nothing was compiled, so nothing is tested"

    warm = compile_with(store, tmp_path / "two", spool=spool)
    assert warm["hit"], warm["reason"]
    assert warm["reason"] is None
    assert warm["kernels"] == cold["built"]
    assert warm["built"] == 0, "kernels were built again: the cache does nothing"
    assert warm["graphs_found"] >= 1
    assert warm["save_reason"] == "nothing new was compiled"
    assert (warm["loss"], warm["gradients"]) == (cold["loss"], cold["gradients"])

    (archive,) = store.glob("*.ettcache")
    events = [json.loads(line) for path in sorted(spool.glob("*.jsonl")) for line in path.read_text().splitlines()]
    loads = {event["span"]: event["ts"] for event in events if event.get("phase") == "pt2_compilation.cache_load"}
    told = [event for event in events if event["kind"] == "phase_ended" and event.get("span") in loads]
    told.sort(key=lambda event: event["ts"])
    assert [event["attrs"]["cache"] for event in told] == ["miss", "hit"]
    assert {event["attrs"]["cache_key"] for event in told} == {archive.stem}
    assert told[1]["attrs"]["bytes"] > 0
