"""Compiled ahead of the first batch: then nothing is left to compile, and nothing else has changed, bit by bit."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch._dynamo.callback import callback_handler
from torch.nn.parallel import DistributedDataParallel

from ettwatch_trainer.remedies.startup import Startup, compile_ahead

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Net(torch.nn.Module):
    """Everything that a forward pass may touch: dropout, running statistics, a sparse table, a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(20, 4)
        self.layer = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.drop = torch.nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, ids: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        self.get_buffer("calls").add_(1)
        result: torch.Tensor = self.drop(self.norm(self.layer(dense) + self.table(ids)))
        return result.sum(1)


def batch(seed: int, size: int = 6) -> dict[str, torch.Tensor]:
    chance = torch.Generator().manual_seed(seed)
    return {"ids": torch.randint(20, (size,), generator=chance), "dense": torch.randn(size, 4, generator=chance)}


def net() -> Net:
    torch.manual_seed(3)
    model = Net()
    model.compile(backend="aot_eager")
    return model


@contextmanager
def compilations() -> Iterator[list[str]]:
    seen: list[str] = []

    def started(what: Any) -> None:
        seen.append(what.callback_trigger.name)

    callback_handler.register_start_callback(started)
    yield seen
    callback_handler.remove_start_callback(started)


def train(model: Net, steps: int = 3) -> list[float]:
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(**batch(step)).square().mean()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def bits(model: torch.nn.Module) -> dict[str, bytes]:
    return {name: tensor.detach().numpy().tobytes() for name, tensor in model.state_dict().items()}


def test_after_it_nothing_is_left_to_compile() -> None:
    model = net()
    with compilations() as before:
        assert compile_ahead(model, batch(0)) > 0
    with compilations() as after:
        train(model)
    assert before == ["DYNAMO", "LAZY_BACKWARD"]
    assert after == [], "the first steps compiled again: compiling ahead did nothing for them"
    torch.compiler.reset()
    with compilations() as without:
        train(net())
    assert len(without) == 2, "the steps compile nothing by themselves, so nothing was shown"


def test_in_a_thread_it_compiles_for_the_thread_that_trains() -> None:
    model = net()
    Startup(deadline_s=300).add("compile", lambda: compile_ahead(model, batch(0))).run()
    with compilations() as after:
        train(model)
    assert after == []


def test_losses_weights_and_random_numbers_are_the_same_with_and_without() -> None:
    def run(ahead: bool) -> tuple[list[float], dict[str, bytes], bytes, float, float]:
        torch.compiler.reset()
        random.seed(1)
        np.random.seed(1)
        model = net()
        if ahead:
            compile_ahead(model, tuple(batch(9).values()), loss=lambda output: output.square().mean())
        losses = train(model)
        return losses, bits(model), torch.get_rng_state().numpy().tobytes(), random.random(), float(np.random.rand())

    assert run(True) == run(False)


def test_weights_gradients_buffers_and_modes_are_left_alone() -> None:
    model = net().eval()
    model.layer.weight.grad = kept = torch.ones(4, 4)
    seen: list[object] = []
    for weight in model.parameters():
        hooked: Any = weight
        hooked.register_post_accumulate_grad_hook(seen.append)
    before, chance, buffer = bits(model), torch.get_rng_state(), model.get_buffer("calls")
    compile_ahead(model, batch(0))
    assert bits(model) == before
    assert model.get_buffer("calls") is buffer
    assert torch.equal(torch.get_rng_state(), chance)
    assert model.layer.weight.grad is kept
    assert torch.equal(kept, torch.ones(4, 4))
    assert [name for name, weight in model.named_parameters() if weight.grad is not None] == ["layer.weight"]
    assert seen == [], "hooks of gradients ran: an optimizer in the backward pass would have stepped"
    assert not model.training


def test_a_failing_forward_leaves_all_as_it_was_too() -> None:
    model = net()
    before, chance = bits(model), torch.get_rng_state()
    with pytest.raises(RuntimeError, match="no loss"):
        compile_ahead(model, batch(0), loss=_raise)
    assert bits(model) == before
    assert torch.equal(torch.get_rng_state(), chance)


def _raise(output: Any) -> torch.Tensor:
    raise RuntimeError("no loss")


def test_a_model_that_only_reads_is_compiled_forward_only() -> None:
    model = net().eval()
    with compilations() as seen, torch.no_grad():
        compile_ahead(model, batch(0), backward=False)
        model(**batch(1))
    assert seen == ["DYNAMO"]


def test_nothing_to_derive_is_told() -> None:
    model = net().requires_grad_(False)
    with pytest.raises(ValueError, match="backward=False"):
        compile_ahead(model, batch(0))


class Moves(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.weight.mul_(2)
        return x * self.weight


def test_a_forward_that_moves_weights_is_told() -> None:
    with pytest.raises(RuntimeError, match="changes weight in place"):
        compile_ahead(Moves(), [torch.ones(3)], backward=False)


def test_a_wrapper_that_would_talk_to_other_ranks_is_refused(tmp_path: Any) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        wrapped = DistributedDataParallel(torch.nn.Linear(2, 2))
        with pytest.raises(TypeError, match="module inside"):
            compile_ahead(wrapped, [torch.ones(1, 2)])
    finally:
        dist.destroy_process_group()
