"""The reading of the state, where a record that it waits for was dropped."""

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from ettwatch_faust.stalled import RecoveryWatch

ONE, TWO = TP("state", 1), TP("state", 2)


class World:
    """Faust's parts as the watch sees them, and a clock."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.done: list[Any] = []
        self.fails: BaseException | None = None
        self.in_recovery = True
        self.active_tps = {ONE, TWO}
        self.active_offsets: Counter[TP] = Counter({ONE: 7, TWO: 9})
        self.highwaters = {ONE: 8, TWO: 9}
        consumer = SimpleNamespace(
            resume_partitions=lambda tps: self.done.append(("partitions", tps)),
            resume_flow=lambda: self.done.append("flow"),
        )
        flow = SimpleNamespace(resume=lambda: self.done.append("control"))
        app = SimpleNamespace(tables=SimpleNamespace(recovery=self), consumer=consumer, flow_control=flow)
        self.watch = RecoveryWatch(app, monotonic=lambda: self.now_s)

    def active_remaining(self) -> Counter[TP]:
        return Counter({tp: end - self.active_offsets[tp] for tp, end in self.highwaters.items()})

    def need_recovery(self) -> bool:
        return any(left > 0 for left in self.active_remaining().values())

    async def _seek_offsets(self, consumer: Any, tps: set[TP], offsets: Counter[TP], title: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.done.append(("seek", {tp: offsets[tp] for tp in tps}, title))

    def passes(self, seconds: int) -> list[Any]:
        """What was done in that time."""
        self.done.clear()
        for _ in range(seconds):
            self.now_s += 1
            asyncio.run(self.watch.look())
        return self.done


GOING = [("seek", {ONE: 7, TWO: 9}, "active"), ("partitions", {ONE, TWO}), "control", "flow"]


def test_where_nothing_comes_the_place_is_sought_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    assert world.passes(10) == []
    assert world.passes(1) == GOING
    assert "1 records of partition 1)" in caplog.messages[0]
    # In vain: less often from then on, but for ever.
    assert world.passes(19) == []
    assert world.passes(1) == GOING
    assert len(world.passes(3600)) == pytest.approx(len(GOING) * 3600 / 60, abs=3 * len(GOING))


def test_what_goes_on_is_left_alone() -> None:
    world = World()
    world.highwaters[TWO] = 1_000
    for _ in range(20):
        assert world.passes(9) == []
        world.active_offsets[TWO] += 1
    world.active_offsets[TWO], world.active_offsets[ONE] = 1_000, 8
    assert world.passes(100) == []
    world.in_recovery, world.highwaters[ONE] = False, 9
    assert world.passes(100) == []


@pytest.mark.parametrize("error", [TimeoutError(), RuntimeError("no longer assigned")])
def test_where_it_cannot_be_sought_it_is_tried_again(error: Exception) -> None:
    world = World()
    world.fails = error
    assert world.passes(15) == []
    world.fails = None
    assert world.passes(25) == GOING
