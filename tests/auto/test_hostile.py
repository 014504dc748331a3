"""Trainers that make it hard for the hooks: threads, devices, other versions of PyTorch."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from auto.conftest import Run
from ettwatch_schemas import PhaseStarted
from support.spooled import events, python, timeline

pytestmark = pytest.mark.torch

BESIDE = """
    import threading, time, torch
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(7)
    torch.nn.init.ones_(model.weight); torch.nn.init.zeros_(model.bias)
    begun, told = threading.Event(), threading.Event()

    def backend(graph, inputs):
        begun.set()
        assert told.wait(200)
        return graph.forward

    def step():
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)

    step()
    thread = threading.Thread(target=lambda: torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2)))
    thread.start()
    assert begun.wait(200)
    if GOES_ON:
        for _ in range(60): step()
    else:
        time.sleep(0.6)
    told.set()
    thread.join()
    step()
    print(model.weight.tolist())
"""


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_compilation_in_another_thread_is_charged_if_training_waits_for_it(
    auto: Run, spool: Path, tmp_path: Path, goes_on: bool
) -> None:
    code = BESIDE.replace("GOES_ON", str(goes_on))
    done = auto(code)
    assert done.returncode == 0, done.stderr
    (phase,) = (
        event for event in events(spool) if isinstance(event, PhaseStarted) and event.phase.startswith("pt2_compil")
    )
    assert (phase.phase, bool(phase.background)) == ("pt2_compilation.forward", goes_on)
    summary = timeline(events(spool)).summary
    assert (summary.status, summary.flags) == ("succeeded", [])
    if goes_on:
        assert summary.effective_s > 0.5
        assert summary.components["pt2_compilation"] == 0
    else:
        assert summary.components["pt2_compilation"] > 0.5
    assert python(code, tmp_path / "none", timeout_s=280).stdout == done.stdout


# Every way by which a tensor's value is looked at, or its device waited for, by who asks. On a GPU each of them waits.
WAITS = """
    import sys, torch
    asked = []
    def counted(owner, name):
        real = getattr(owner, name)
        def count(*args, **more):
            code = sys._getframe(1).f_code
            if "/producers/ettwatch/" in code.co_filename:
                asked.append((name, code.co_filename.rpartition("/")[2], code.co_name))
            return real(*args, **more)
        setattr(owner, name, count)
    for name in ("item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "__repr__",
                 "__str__", "__format__", "__len__", "__eq__", "__lt__", "__gt__", "nonzero", "to"):
        counted(torch.Tensor, name)
    counted(torch.cuda, "synchronize")
    counted(torch.cuda.Event, "synchronize")
    counted(torch.cuda.Stream, "synchronize")
"""


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_no_hook_looks_at_a_tensor_in_a_step(auto: Run, spool: Path, tmp_path: Path, optimizer: str) -> None:
    code = f"""
        model = torch.nn.Linear(8, 1)
        data = torch.utils.data.TensorDataset(torch.ones(80, 8), torch.ones(80, 1))
        loader = torch.utils.data.DataLoader(data, batch_size=8)
        held_out = torch.utils.data.DataLoader(data, batch_size=8)
        optimizer = torch.optim.{optimizer}(model.parameters())
        for epoch in range(3):
            for inputs, targets in loader:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), targets).backward()
                optimizer.step()
            with torch.no_grad():
                for inputs, _ in held_out: model(inputs)
            torch.save({{"model": model.state_dict()}}, {str(tmp_path / "saved.pt")!r})
        print(asked)
    """
    done = auto(textwrap.dedent(WAITS) + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    found = eval(done.stdout)
    # The optimizer's count of steps is read once, where the loop begins, and only where it lies on the CPU.
    once = {("item", "resume.py", "_count")} if optimizer == "Adam" else set()
    assert set(found) <= once
    assert len(found) <= 2
    assert max(getattr(event, "position") for event in events(spool, "progress")) == 30  # noqa: B009


def test_a_count_of_steps_on_a_device_is_not_read(auto: Run, spool: Path) -> None:
    code = """
        import torch
        weights = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([weights], lr=0.1)
        def step():
            weights.sum().backward()
            optimizer.step()
            # As that of a capturable Adam: a value that is not on the CPU. To read one on `meta` raises.
            optimizer.state[weights]["step"] = torch.zeros((), device="meta")
        for _ in range(4): step()
    """
    done = auto(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert [getattr(event, "position") for event in events(spool, "training_started")] == [0]  # noqa: B009


SHAPES = """
    import sys, torch
    import torch._dynamo, torch.distributed.checkpoint, torch.utils.data
    import torch.distributed.checkpoint.state_dict_saver as saver
    import torch.distributed.distributed_c10d as c10d
    import torch.serialization as serialization
    torch._dynamo.on_compile_start = lambda: None
    del serialization.load
    serialization.save = type("Save", (), {"__call__": lambda self: None})()
    saver.async_save = 7
    torch.utils.data.dataloader.DataLoader.__iter__ = None
    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook = lambda: None
    c10d.init_process_group = lambda *ranks: None
    import ettwatch.auto
    print("goes on")
"""


def test_hooks_whose_targets_have_another_shape_are_off_and_say_so_once(spool: Path) -> None:
    done = python(SHAPES, spool, {"ETTWATCH_JOB": "j"}, timeout_s=280)
    assert (done.returncode, done.stdout) == (0, "goes on\n"), done.stderr
    off = re.findall(r"the hook `(\w+)` is off with torch \S+ Changed: ", done.stderr)
    assert sorted(off) == ["compile", "dcp", "group", "load", "loader", "optimizer", "save"]
    assert done.stderr.count("\n") == len(off)


def test_a_name_of_torch_that_is_none_breaks_nothing(spool: Path) -> None:
    code = """
        import sys
        sys.modules["torch"] = None
        import ettwatch.auto, ettwatch
        with ettwatch.init(job="k") as rec, rec.training(position=0): rec.step(1)
        print("goes on")
    """
    done = python(code, spool, {"ETTWATCH_JOB": "j"})
    assert (done.returncode, done.stdout) == (0, "goes on\n"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("torch", ["", "compiler = None", "class compiler: pass", "import time; time.sleep(0.2)"])
def test_a_torch_that_cannot_say_whether_it_compiles_breaks_nothing(spool: Path, tmp_path: Path, torch: str) -> None:
    (tmp_path / "torch.py").write_text(torch)
    code = """
        import threading, ettwatch
        rec = ettwatch.init(job="j")
        thread = threading.Thread(target=__import__, args=("torch",))
        thread.start()
        for _ in range(50):
            with rec.phase("trainer_init.a"): pass
        thread.join()
        with rec.training(position=0):
            with rec.checkpoint(): pass
            rec.step(1)
    """
    done = python(code, spool, {"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(events(spool, "phase_ended")) == 51
    assert len(events(spool, "training_ended")) == 1


def test_to_start_the_workers_of_a_loader_again_is_a_wait(auto: Run, spool: Path) -> None:
    code = """
        import time, torch
        class Slow(torch.utils.data.DataLoader):
            waits = iter([6, 0.3, 0.3])
            def _get_iterator(self):
                time.sleep(next(self.waits))
                return super()._get_iterator()
        weights = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([weights], lr=0.1)
        loader = Slow(torch.ones(4, 1), batch_size=1)
        for _ in range(3):
            for batch in loader:
                (weights * batch).sum().backward()
                optimizer.step()
    """
    done = auto(code)
    assert (done.returncode, done.stderr) == (0, "")
    # Of the first epoch it is the first batch's, or start-up; of the others there is no other name for it.
    assert 0.55 < timeline(events(spool)).summary.stages["wasted_training.data_stall"] < 6
