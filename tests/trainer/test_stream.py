from collections.abc import Callable

import pytest
import torch

from ettwatch_trainer.config import TrainerConfig
from ettwatch_trainer.stream import Batch, Clicks, Reader, held_out

pytestmark = pytest.mark.torch


def same(one: Batch, other: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def joined(batches: list[Batch]) -> Batch:
    return Batch(*(torch.cat(parts) for parts in zip(*batches, strict=True)))


def test_a_resumed_reader_goes_on_bit_for_bit(small: TrainerConfig) -> None:
    clicks = Clicks.of(small)
    undisturbed = Reader(clicks, small, position=0)
    for _ in range(3):
        next(undisturbed)
    # As after a restart: everything is made anew, only the position is kept.
    resumed = Reader(Clicks.of(small), small, position=undisturbed.position)
    for _ in range(3):
        assert same(next(undisturbed), next(resumed))
    assert undisturbed.position == resumed.position == 6 * small.batch


def test_the_ranks_share_the_stream_without_gap_or_overlap(small: TrainerConfig) -> None:
    clicks = Clicks.of(small)
    alone = Reader(clicks, small, position=0)
    pair = [Reader(clicks, small, position=0, rank=rank, world=2) for rank in range(2)]
    for _ in range(3):
        assert same(joined([next(alone), next(alone)]), joined([next(reader) for reader in pair]))
    assert {reader.position for reader in pair} == {alone.position}


def test_samples_differ_by_seed_and_by_position(changed: Callable[..., TrainerConfig]) -> None:
    one, other = changed(), changed(seed=1)
    first = Clicks.of(one).read(0, 64)
    assert not same(first, Clicks.of(one).read(64, 64))
    assert not same(first, Clicks.of(other).read(0, 64))


def test_the_features_are_what_the_model_can_take(small: TrainerConfig) -> None:
    batch = Clicks.of(small).read(0, 4000)
    assert batch.dense.shape == (4000, small.dense)
    assert batch.ids.shape == (4000, small.tables)
    assert 0 <= int(batch.ids.min()) <= int(batch.ids.max()) < small.rows
    assert set(batch.clicks.tolist()) == {0.0, 1.0}
    assert 0.2 < float(batch.clicks.mean()) < 0.6
    # Popular ids are read far more often than rare ones.
    assert (batch.ids < small.rows // 8).float().mean() > 3 * (batch.ids > small.rows * 7 // 8).float().mean()


def test_held_out_samples_are_the_same_each_time_and_differ_by_rank(small: TrainerConfig) -> None:
    clicks = Clicks.of(small)
    mine = list(held_out(clicks, small, 0))
    assert len(mine) == small.evaluate_batches
    assert all(same(a, b) for a, b in zip(mine, held_out(clicks, small, 0), strict=True))
    assert not any(same(a, b) for a, b in zip(mine, held_out(clicks, small, 1), strict=True))


def test_slow_reads_come_where_they_are_asked_for(changed: Callable[..., TrainerConfig]) -> None:
    config = changed(open_s=2.0, slow_read_every=3, slow_read_s=0.5)
    slept: list[float] = []
    reader = Reader(Clicks.of(config), config, position=0, sleep=slept.append)
    waits = []
    for _ in range(6):
        slept.clear()
        next(reader)
        waits.append(sum(slept))
    assert waits == [2.0, 0.0, 0.5, 0.0, 0.0, 0.5]
