from pathlib import Path

import pytest

from adapters.conftest import Example, installed
from ettwatch_core import Snapshot
from support.spooled import events, kinds, timeline

TORCH = pytest.mark.torch


def told(spool: Path) -> Snapshot:
    return timeline(events(spool))


def loop(spool: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Position and step at the start and at the end of the newest loop."""
    start, end = events(spool, "training_started")[-1], events(spool, "training_ended")[-1]
    return (getattr(start, "position"), getattr(start, "step")), (getattr(end, "position"), getattr(end, "step"))  # noqa: B009


HUGGING_FACE = """
if {real}:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, TrainingArguments
    class Config(PretrainedConfig): model_type = "tiny"
    class Model(PreTrainedModel):
        config_class = Config
        def __init__(self, config):
            super().__init__(config)
            self.layer = torch.nn.Linear(4, 1)
            self.post_init()
        def _init_weights(self, module): pass
        def forward(self, x=None, labels=None, **more):
            found = self.layer(x).squeeze(-1)
            return {{"loss": ((found - labels) ** 2).mean(), "logits": found}}
    data = held_out = [{{"x": torch.ones(4) * n, "labels": torch.tensor(float(n))}} for n in range(64)]
    args = TrainingArguments(
        output_dir={out!r}, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps={steps},
        save_steps=5, eval_steps=4, eval_strategy="steps", save_strategy="steps", report_to=[], use_cpu=True,
        disable_tqdm=True)
    model = Model(Config())
else:
    from types import SimpleNamespace
    args = SimpleNamespace(train_batch_size=4, gradient_accumulation_steps=2, world_size=1, max_steps={steps},
                           save_steps=5, eval_steps=4, output_dir={out!r})
    model = data = held_out = None
"""


def test_hugging_face(example: Example, spool: Path, tmp_path: Path) -> None:
    def stage(steps: int) -> str:
        return HUGGING_FACE.format(real=installed("transformers"), out=str(tmp_path / "out"), steps=steps)

    example("Hugging Face Trainer", stage(10), "transformers")
    assert loop(spool) == ((0, 0), (80, 10))
    durable = events(spool, "checkpoint_durable")
    assert [(getattr(one, "position"), getattr(one, "step")) for one in durable] == [(40, 5), (80, 10)]  # noqa: B009
    stages = told(spool).summary.stages
    assert {
        "trainer_init.get_first_batch_data",
        "wasted_training.evaluation",
        "wasted_training.checkpoint_save",
    } <= set(stages)
    assert stages.get("wasted_training.data_stall", 0) > 0
    assert told(spool).summary.flags == []


def test_hugging_face_resumes_at_its_position(example: Example, spool: Path, tmp_path: Path) -> None:
    stage = HUGGING_FACE.format(real=installed("transformers"), out=str(tmp_path / "out"), steps=5)
    example("Hugging Face Trainer", stage, "transformers")
    example(
        "Hugging Face Trainer",
        stage.replace("max_steps=5", "max_steps=8") + "\nimport transformers\ntransformers.Trainer.train = "
        "(lambda train: lambda self: train(self, resume_from_checkpoint=True))(transformers.Trainer.train)",
        "transformers",
        env={"ETTWATCH_ATTEMPT": "1"},
    )
    assert loop(spool) == ((40, 5), (64, 8))


LIGHTNING = """
if {real}:
    import lightning.pytorch, torch, warnings
    warnings.simplefilter("ignore")
    class Model(lightning.pytorch.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def training_step(self, batch, number): return self.layer(batch[0]).mean()
        def validation_step(self, batch, number): pass
        def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
    model = Model()
    train_loader = val_loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.ones(20, 4)), batch_size=4)
    settings = dict(logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
                    default_root_dir={out!r})
else:
    class Tensor:
        shape = (4, 4)
    model, val_loader = None, None
    class Loader:
        def __iter__(self):
            import time
            for _ in range(5):
                time.sleep(0.01)
                yield [{{"x": Tensor()}}]
    train_loader = Loader()
    settings = dict(default_root_dir={out!r})
"""


def test_lightning(example: Example, spool: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    real = installed("lightning")
    example("Lightning", LIGHTNING.format(real=real, out=str(tmp_path / "out")), "lightning")
    world = 1 if real else 2
    assert loop(spool) == ((0, 0), (40 * world, 10))
    summary = told(spool).summary
    assert {
        "trainer_init.sanity_check",
        "trainer_init.get_first_batch_data",
        "wasted_training.evaluation",
        "wasted_training.checkpoint_save",
        "wasted_training.data_stall",
    } <= set(summary.stages) | ({"trainer_init.sanity_check"} if not real else set())
    assert summary.flags == []
    durable = events(spool, "checkpoint_durable")
    assert getattr(durable[-1], "position") == 40 * world  # noqa: B009


def test_lightning_keeps_its_position_in_its_checkpoints(example: Example, spool: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    stage = LIGHTNING.format(real=installed("lightning"), out=str(tmp_path / "out"))
    path = str(tmp_path / "out" / "saved.ckpt")
    example("Lightning", stage, "lightning", then=f"trainer.save_checkpoint({path!r})")
    done = loop(spool)[1]
    more = (
        f"\nfrom lightning.pytorch import Trainer\nTrainer.fit = (lambda fit: lambda self, *a: "
        f"fit(self, *a, ckpt_path={path!r}))(Trainer.fit)\n"
    )
    example(
        "Lightning", stage + more.replace("max_epochs=2", "max_epochs=3"), "lightning", env={"ETTWATCH_ATTEMPT": "1"}
    )
    starts = [event for event in events(spool, "training_started") if event.attempt == 1]
    # With the real one the epochs are done already, and nothing is left to train.
    assert [getattr(start, "position") for start in starts] in ([done[0]], [])  # noqa: B009


@TORCH
@pytest.mark.skipif(not installed("torch"), reason="needs torch")
def test_plain_pytorch(example: Example, spool: Path, tmp_path: Path) -> None:
    stage = f"""
from pathlib import Path
import torch
data = torch.utils.data.TensorDataset(torch.ones(256, 16), torch.ones(256, 1))
path = Path({str(tmp_path / "model.pt")!r})
"""
    example("A loop of your own in PyTorch", stage)
    assert loop(spool) == ((0, 0), (256, 8))
    assert kinds(events(spool)).count("checkpoint_durable") == 2
    example("A loop of your own in PyTorch", stage, env={"ETTWATCH_ATTEMPT": "1"})
    assert loop(spool) == ((256, 8), (512, 16))
    assert told(spool).summary.stages.get("wasted_training.rework", 0) == 0


def test_jax(example: Example, spool: Path) -> None:
    if installed("jax"):
        stage = "import numpy\nloader = [(numpy.ones((4, 3)), numpy.ones(4))] * 5"
    else:
        stage = """
class Inputs(list):
    shape = (4, 3)
    def __matmul__(self, weights): return 0.0
loader = [(Inputs([0] * 4), 0.0)] * 5
"""
    example("A loop in JAX", stage, "jax")
    assert loop(spool) == ((0, 0), (20, 5))
    stages = told(spool).summary.stages
    assert {"trainer_init.device_init", "pt2_compilation", "trainer_init.get_first_batch_data"} <= set(stages)
