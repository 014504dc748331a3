"""From seconds to steps: when a save is due, on one rank and on several."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from ettwatch_trainer.remedies.recovery import AdaptiveInterval
from ettwatch_trainer.remedies.recovery.schedule import Schedule
from support.checkpoint_ranks import Ranks

pytestmark = pytest.mark.torch


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def saves(
    schedule: Schedule, clock: Clock, paces: list[float], blocking_s: float = 0.1, durable_after_s: float = 0.0
) -> list[tuple[int, float]]:
    """The steps after which it was saved and when, with steps that take so long."""
    found = []
    for step, pace in enumerate(paces, 1):
        clock.now += pace
        if schedule.due(step):
            found.append((step, clock.now))
            clock.now += blocking_s
            schedule.saved(step, blocking_s, durable_after_s)
    return found


def test_it_saves_about_every_interval() -> None:
    clock = Clock()
    schedule = Schedule(AdaptiveInterval(minimum_s=50, maximum_s=50), clock=clock)
    times = [at for _, at in saves(schedule, clock, [1.0] * 1000)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == pytest.approx(50, abs=2)
    assert gaps == pytest.approx([50] * len(gaps), abs=2)


def test_it_follows_steps_that_become_slower_or_faster() -> None:
    clock = Clock()
    schedule = Schedule(AdaptiveInterval(minimum_s=100, maximum_s=100), clock=clock)
    times = [at for _, at in saves(schedule, clock, [5.0] * 10 + [0.5] * 800 + [2.0] * 400)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps[2:] == pytest.approx([100] * (len(gaps) - 2), rel=0.8)
    assert sum(80 < gap < 130 for gap in gaps) > len(gaps) * 0.6


def test_it_moves_when_saves_turn_out_to_be_cheap() -> None:
    clock = Clock()
    interval = AdaptiveInterval(minimum_s=10, maximum_s=2000, first_blocking_s=15)
    schedule = Schedule(interval, clock=clock)
    times = [at for _, at in saves(schedule, clock, [1.0] * 3000, blocking_s=0.015)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == pytest.approx(929.5, rel=0.05)
    assert gaps[-1] == pytest.approx(29.4, rel=0.15)


def test_no_save_is_begun_before_the_one_before_it_is_safe() -> None:
    clock = Clock()
    schedule = Schedule(AdaptiveInterval(minimum_s=10, maximum_s=2000, first_blocking_s=0.015), clock=clock)
    times = [at for _, at in saves(schedule, clock, [1.0] * 3000, blocking_s=0.015, durable_after_s=120.0)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == pytest.approx(29.4, rel=0.15)
    assert gaps == pytest.approx([120] * len(gaps), abs=3)


def test_it_ends_as_it_should(tmp_path: Path) -> None:
    book = tmp_path / "interval.json"
    clock = Clock()
    schedule = Schedule(AdaptiveInterval(minimum_s=10, maximum_s=20, book=book), clock=clock)
    clock.now = 30.0
    schedule.ended()
    after = AdaptiveInterval(minimum_s=10, maximum_s=20, book=book)
    after.begin(0.0)
    assert after.failures_per_day < 3.0


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    made = Ranks(2, tmp_path_factory.mktemp("ranks") / "store")
    yield made
    made.close()


def _saves(rank: int, world: int) -> list[tuple[int, float]]:
    """Rank 1 runs on a clock of its own, and has no interval."""
    clock = Clock()
    interval = AdaptiveInterval(minimum_s=20, maximum_s=20) if rank == 0 else None
    return saves(Schedule(interval, clock=clock), clock, [1.0 + 3 * rank] * 300)


def test_all_ranks_save_after_the_same_steps(two: Ranks) -> None:
    first, second = two.run(_saves)
    assert [step for step, _ in first] == [step for step, _ in second]
    assert len(first) >= 12


def test_rank_0_needs_an_interval() -> None:
    with pytest.raises(ValueError, match="rank 0 decides, and needs one"):
        Schedule(None)
