import inspect
import re
from pathlib import Path

from click import Option

import ettwatch
from ettwatch.default import init
from ettwatch.recorder import Recorder
from ettwatch.run_command import run
from ettwatch_schemas import PhaseStarted
from support.spooled import events, kinds, python, timeline

PAGE = (Path(__file__).parents[2] / "docs" / "instrument.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
STAGE = """
class Upload:
    def when_done(self, call): call()
def build_model(): return "model"
def load_checkpoint(model): return 640
def train_step(model, batch): assert model == "model"
def checkpoint_is_due(): return True
def save_checkpoint(model): pass
def publish(model): pass
def build_features(): pass
def start_upload(model): return Upload()
loader = [[0] * 32] * 3
model, batch = "model", loader[0]
"""


def test_the_ten_lines_run_and_say_what_they_should(spool: Path) -> None:
    done = python(STAGE + BLOCKS[0], spool)
    assert (done.returncode, done.stderr) == (0, "")
    found = events(spool)
    assert [event.phase for event in found if isinstance(event, PhaseStarted)] == [
        "trainer_init.train_module_creation",
        "trainer_init.checkpoint_load",
        *["wasted_training.checkpoint_save"] * 3,
        "shutdown.model_publish",
    ]
    summary = timeline(found).summary
    assert (summary.job, summary.status, summary.flags) == ("ads-ranking-17", "succeeded", [])
    assert summary.effective_s > 0
    (ended,) = events(spool, "training_ended")
    assert getattr(ended, "position", None) == 640 + 3 * 32


def test_every_example_runs(spool: Path) -> None:
    assert len(BLOCKS) >= 8
    done = python(STAGE + "".join(["import ettwatch\n", *BLOCKS[1:], "read_config()\n"]), spool)
    assert (done.returncode, done.stderr) == (0, "")
    found = kinds(events(spool))
    assert found.count("checkpoint_durable") == 2
    assert {"training_started", "progress", "training_ended", "phase_ended", "attempt_ended", "job_ended"} <= set(found)


def test_everything_public_is_told_of() -> None:
    words = set(re.findall(r"\w+", PAGE))
    assert {name for name in vars(Recorder) if not name.startswith("_")} <= words
    assert {name for name in ettwatch.__all__ if name.islower() and not name.startswith("_")} <= words
    told = re.search(r"`init\(([^)]*)\)`", PAGE)
    assert told is not None
    assert told[1].split(", ") == list(inspect.signature(init).parameters)


def test_every_option_of_run_is_told_of() -> None:
    options = {name for option in run.params if isinstance(option, Option) for name in option.opts}
    page = (Path(__file__).parents[2] / "docs" / "run.md").read_text(encoding="utf-8")
    table = page.partition("## Options")[2].partition("## What it does")[0]
    assert options == set(re.findall(r"`(--[a-z-]+)", table))
