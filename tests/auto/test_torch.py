"""Each hook on real PyTorch, in scripts that know nothing of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from auto.conftest import Run
from ettwatch_schemas import PhaseStarted
from support.spooled import events, python, timeline

pytestmark = pytest.mark.torch

TRAIN = """
    import torch, time
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(7)
    model = torch.nn.Linear(8, 1)
    data = TensorDataset(torch.randn(80, 8), torch.randn(80, 1))
    loader, held_out = DataLoader(data, batch_size=8, num_workers=WORKERS), DataLoader(data, batch_size=8)
    optimizer = torch.optim.OPTIMIZER(model.parameters(), lr=0.1)
    PREPARE
    if __name__ == "__main__":
        for epoch in range(2):
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
                time.sleep(0.005)
            with torch.no_grad():
                total = sum(float(model(inputs).sum()) for inputs, _ in held_out)
            torch.save({"model": model.state_dict(), "epoch": epoch}, OUT)
            torch.save([1, 2, 3], OUT + ".notes")
        print(f"{loss.item():.9f} {total:.6f} {type(iter(loader)).__name__}")
"""


def script(out: Path, optimizer: str = "Adam", workers: int = 0, prepare: str = "pass") -> str:
    code = TRAIN.replace("OPTIMIZER", optimizer).replace("WORKERS", str(workers)).replace("PREPARE", prepare)
    return code.replace("OUT", repr(str(out / "model.pt")))


def phases(spool: Path) -> Counter[str]:
    return Counter(event.phase for event in events(spool) if isinstance(event, PhaseStarted))


def positions(spool: Path, attempt: int = 0) -> list[int]:
    kinds = ("training_started", "progress")
    return [getattr(event, "position") for event in events(spool, *kinds) if event.attempt == attempt]  # noqa: B009


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loop_with_a_data_loader(auto: Run, spool: Path, tmp_path: Path, workers: int) -> None:
    done = auto(script(tmp_path, workers=workers))
    assert (done.returncode, done.stderr) == (0, "")
    found = positions(spool)
    assert (found[0], found[-1]) == (0, 20)
    assert phases(spool) == {
        "hardware_setup.binary_start": 1,
        "trainer_init": 1,
        "trainer_init.get_first_batch_data": 1,
        "wasted_training.evaluation": 2,
        "wasted_training.checkpoint_save": 2,
    }
    assert [getattr(event, "step") for event in events(spool, "checkpoint_durable")] == [10, 20]  # noqa: B009
    assert {event.rank for event in events(spool)} == {0}
    summary = timeline(events(spool)).summary
    assert (summary.status, summary.flags) == ("succeeded", [])
    assert summary.effective_s > 0.08
    bare = python(script(tmp_path, workers=workers), tmp_path / "none", {"OMP_NUM_THREADS": "1"})
    assert bare.stdout.split()[:2] == done.stdout.split()[:2]


def test_where_the_optimizer_keeps_count_a_resumed_attempt_goes_on(auto: Run, spool: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "optimizer.pt")
    load = f"optimizer.load_state_dict(torch.load({path!r}))"
    keep = f"import atexit; atexit.register(lambda: torch.save(optimizer.state_dict(), {path!r}))"
    assert auto(script(tmp_path, prepare=keep)).returncode == 0
    assert auto(script(tmp_path, prepare=load)).returncode == 0
    assert positions(spool, 1)[0] == 20
    assert timeline(events(spool)).summary.stages.get("wasted_training.rework", 0) == 0


@pytest.mark.parametrize("loads", [True, False])
def test_where_it_does_not_the_newest_checkpoint_of_the_launch_counts(
    auto: Run, spool: Path, tmp_path: Path, loads: bool
) -> None:
    path = str(tmp_path / "model.pt")
    load = f"import os; os.path.exists({path!r}) and {loads} and model.load_state_dict(torch.load({path!r})['model'])"
    die = "\n            if epoch == 1 and os.environ['ETTWATCH_ATTEMPT'] == '0': os._exit(3)"
    code = script(tmp_path, "SGD", prepare=load).replace("for epoch in range(2):", f"for epoch in range(2):{die}")
    done = auto(code, "--max-restarts", "1", "--backoff", "0")
    assert done.returncode == 0, done.stderr
    # With a checkpoint loaded it goes on from that; with none it begins anew, and all of it is done again.
    assert positions(spool, 1)[0] == (10 if loads else 0)


COMPILED = """
    import torch
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    @torch.compile(backend="aot_eager", fullgraph=True)
    def loss_of(inputs): return model(inputs).square().mean()
    @torch.compile(backend="aot_eager")
    def update(): optimizer.step()
    def train(rows, step):
        loss_of(torch.randn(rows, 8)).backward()
        step()
        optimizer.zero_grad()
    for rows in (4, 4, 5): train(rows, optimizer.step)
    update()
    torch.compiler.reset()
    train(4, optimizer.step)
    from torch._dynamo.utils import counters
    print(sum(counters["graph_break"].values()))
"""


def test_compilations_recompilations_and_a_reset(auto: Run, spool: Path, tmp_path: Path) -> None:
    done = auto(COMPILED)
    assert done.returncode == 0, done.stderr
    found = phases(spool)
    assert found["pt2_compilation.forward"] >= 3  # one of them after the reset
    assert found["pt2_compilation.backward"] == 2
    assert found["pt2_compilation.recompile"] == 1
    assert positions(spool)[-1] == 4
    bare = python(COMPILED, tmp_path / "none")
    assert bare.stdout == done.stdout, "the hook of the optimizer breaks no graph"


GROUP = """
    import torch, torch.distributed as dist, torch.multiprocessing as mp
    from torch.distributed.checkpoint import async_save, load, save
    def work(rank, folder):
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        other = dist.new_group(backend="gloo")
        for _ in range(3):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        async_save({"m": model.state_dict()}, checkpoint_id=folder + "/a", process_group=other).result()
        save({"m": model.state_dict()}, checkpoint_id=folder + "/b")
        dist.destroy_process_group()
    if __name__ == "__main__":
        mp.start_processes(work, args=(FOLDER,), nprocs=2, start_method=METHOD)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_ranks_that_a_process_starts_itself(auto: Run, spool: Path, tmp_path: Path, method: str) -> None:
    done = auto(GROUP.replace("FOLDER", repr(str(tmp_path))).replace("METHOD", repr(method)))
    assert done.returncode == 0, done.stderr
    by_rank = Counter((event.rank, event.phase) for event in events(spool) if isinstance(event, PhaseStarted))
    for rank in (0, 1):
        assert by_rank[rank, "trainer_init.process_group_init"] == 1
        assert by_rank[
            rank, "wasted_training.checkpoint_save" if rank == 0 else "trainer_init.checkpoint_save"
        ] == 2 or (by_rank[rank, "wasted_training.checkpoint_save"] == 2)
        assert by_rank[rank, "wasted_training.checkpoint_upload"] == 1
        assert by_rank[rank, "shutdown.teardown"] == 1
    assert positions(spool)[-1] == 3
    assert len(events(spool, "checkpoint_durable")) == 2


def test_hooks_can_be_switched_off(auto: Run, spool: Path, tmp_path: Path) -> None:
    done = auto(script(tmp_path), env={"ETTWATCH_AUTO_OFF": "loader, save,nonsense"})
    assert done.stderr.count("there is no hook nonsense") == 1
    assert done.stdout.split()[-1] == "_SingleProcessDataLoaderIter"
    assert phases(spool) == {"hardware_setup.binary_start": 1, "trainer_init": 1}
    assert positions(spool)[-1] == 20
    everything = auto(script(tmp_path), "--job", "k", env={"ETTWATCH_AUTO_OFF": "all"})
    assert everything.stderr == ""
    assert {event.source for event in events(spool) if event.job == "k"} == {"launcher"}


CHANGED = """
    import sys
    import torch.utils.data, torch.serialization, torch.distributed.distributed_c10d
    optimizers = sys.modules["torch.optim.optimizer"]
    del optimizers.register_optimizer_step_post_hook
    def save(things, place): pass
    torch.serialization.save = save
    torch.utils.data.dataloader.DataLoader = None
    torch.distributed.distributed_c10d.init_process_group = len
    import ettwatch.auto
    ettwatch.auto._install()
    assert torch.serialization.save is save
    print("goes on")
"""


def test_a_hook_whose_target_has_changed_is_off_and_says_so_once(spool: Path) -> None:
    done = python(CHANGED, spool)
    assert done.stdout == "goes on\n", done.stderr
    off = re.findall(r"the hook `(\w+)` is off with torch \S+ (\w+): (.*)", done.stderr)
    assert sorted(name for name, _, _ in off) == ["group", "loader", "optimizer", "save"]
    assert "torch.serialization.save has no parameter obj" in done.stderr


def test_what_was_imported_before_is_hooked_too(spool: Path, tmp_path: Path) -> None:
    code = script(tmp_path).replace("torch.save(", "keep(")
    late = "from torch import save as keep\n    import ettwatch.auto\n    torch.manual_seed(7)"
    done = python(code.replace("torch.manual_seed(7)", late, 1), spool, {"ETTWATCH_JOB": "j"})
    assert (done.returncode, done.stderr) == (0, "")
    assert phases(spool)["wasted_training.checkpoint_save"] == 2
    assert positions(spool)[-1] == 20
    assert timeline(events(spool)).summary.status == "succeeded"


BY_HAND = """
    import torch, ettwatch
    data = torch.utils.data.DataLoader(list(range(30)), batch_size=1)
    list(data)
    weights = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([weights])
    rec = ettwatch.init()
    with rec.training(position=1000, step=10):
        for batch in rec.track(data):
            weights.sum().backward()
            optimizer.step()
            rec.step(100)
"""


def test_who_tells_of_the_loop_by_hand_is_left_alone(auto: Run, spool: Path) -> None:
    done = auto(BY_HAND)
    assert done.returncode == 0, done.stderr
    assert (positions(spool)[0], positions(spool)[-1]) == (1000, 4000)
    assert len(events(spool, "training_started")) == len(events(spool, "training_ended")) == 1
    assert timeline(events(spool)).summary.flags == []


def test_what_the_hooks_themselves_raise_does_not_reach_the_trainer(auto: Run, spool: Path, tmp_path: Path) -> None:
    broken = """
    from ettwatch.auto import feeds, saving, steps
    def fails(*args, **kwargs): raise RuntimeError("ours")
    for owner, name in ((feeds.Feeds, "waits"), (feeds.Feeds, "came"), (feeds.Feeds, "ended"),
                        (steps.Steps, "_advance"), (saving, "holds_weights")):
        setattr(owner, name, fails)
"""
    done = auto(script(tmp_path).replace("    torch.manual_seed(7)", broken + "    torch.manual_seed(7)"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "Watched"
    assert 1 <= done.stderr.count("ours") <= 5
    bare = python(script(tmp_path), tmp_path / "none", {"OMP_NUM_THREADS": "1"})
    assert bare.stdout.split()[:2] == done.stdout.split()[:2]


def test_an_exception_of_the_trainer_passes_through(auto: Run, spool: Path) -> None:
    code = """
        import torch
        loader = torch.utils.data.DataLoader([1], collate_fn=lambda items: 1 / 0)
        next(iter(loader))
    """
    done = auto(code)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    (over,) = [event for event in events(spool, "attempt_ended") if event.source == "launcher"]
    assert getattr(over, "cause") == "user_code"  # noqa: B009
