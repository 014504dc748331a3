from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from ettwatch_trainer.checkpoint import CheckpointError
from ettwatch_trainer.config import TrainerConfig
from ettwatch_trainer.group import Group
from ettwatch_trainer.publish import PublishError, publish
from ettwatch_trainer.stream import Clicks
from ettwatch_trainer.trainer import Trainer

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A model this small only waits for more of them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer_of(config: TrainerConfig) -> Trainer:
    return Trainer.of(config, Group(), Clicks.of(config))


def train(trainer: Trainer, steps: int) -> list[float]:
    reader = trainer.reader()
    return [trainer.train(next(reader)) for _ in range(steps)]


def equal(one: Trainer, other: Trainer) -> bool:
    mine, others = one.model.state_dict(), other.model.state_dict()
    return mine.keys() == others.keys() and all(torch.equal(mine[name], others[name]) for name in mine)


def test_the_model_learns(changed: Callable[..., TrainerConfig]) -> None:
    trainer = trainer_of(changed(batch=512, learning_rate=0.05))
    before = trainer.evaluate()
    losses = train(trainer, 150)
    assert sum(losses[-10:]) / 10 < 0.9 * before
    assert trainer.evaluate() < 0.9 * before
    assert (trainer.step, trainer.position) == (150, 150 * 512)


def test_two_trainers_of_one_seed_are_equal_and_of_two_seeds_are_not(
    changed: Callable[..., TrainerConfig],
) -> None:
    assert equal(trainer_of(changed()), trainer_of(changed()))
    assert not equal(trainer_of(changed()), trainer_of(changed(seed=1)))


def test_a_resumed_run_equals_an_undisturbed_one_bit_for_bit(small: TrainerConfig) -> None:
    undisturbed = trainer_of(small)
    losses = train(undisturbed, 20)
    first = trainer_of(small)
    train(first, 8)
    first.save()
    train(first, 5)  # lost: no checkpoint follows
    second = trainer_of(small)
    found = second.restore()
    assert found is not None
    assert (second.step, second.position) == (8, 8 * small.batch)
    assert train(second, 12) == losses[8:]
    assert equal(second, undisturbed)


def test_without_a_checkpoint_nothing_is_restored(small: TrainerConfig) -> None:
    trainer = trainer_of(small)
    assert trainer.restore() is None
    assert (trainer.step, trainer.position) == (0, 0)


def test_a_checkpoint_of_other_settings_is_refused_with_the_reason(changed: Callable[..., TrainerConfig]) -> None:
    trainer_of(changed(rows=99)).save()
    with pytest.raises(CheckpointError, match=r"is of another model .*; give another --out"):
        trainer_of(changed()).restore()


def test_evaluation_changes_nothing(small: TrainerConfig) -> None:
    one, other = trainer_of(small), trainer_of(small)
    train(one, 3)
    train(other, 3)
    assert one.evaluate() == one.evaluate()
    assert train(one, 2) == train(other, 2)


def test_the_published_model_scores_like_the_trained_one(small: TrainerConfig, tmp_path: Path) -> None:
    trainer = trainer_of(small)
    train(trainer, 5)
    folder = publish(trainer.model, trainer.clicks.read(0, 32), tmp_path, step=5, position=320)
    assert folder == tmp_path / "step-00000005"
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    scorer = torch.export.load(folder / "model.pt2").module()
    other = trainer.clicks.read(5000, 7)
    with torch.no_grad():
        assert torch.allclose(scorer(other.dense, other.ids), trainer.model(other.dense, other.ids), atol=1e-5)


def test_a_model_that_was_exported_wrong_is_not_published(
    small: TrainerConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = trainer_of(small)
    other = trainer_of(small)
    train(other, 5)
    export = torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda model, *rest, **more: export(other.model, *rest, **more))
    with pytest.raises(PublishError, match="the exported model differs"):
        publish(trainer.model, trainer.clicks.read(0, 32), tmp_path, step=5, position=320)
    assert list(tmp_path.glob("step-*")) == []
