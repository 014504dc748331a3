"""The demo's trainer without a line that knows of ettwatch: the package `clicks`, made anew in a folder."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from ettwatch_trainer.config import TrainerConfig

HERE = Path(__file__).parents[1] / "auto" / "plain"
SOURCE = Path(__file__).parents[2] / "producers" / "ettwatch_trainer"
KEPT = ("checkpoint", "config", "group", "lines", "model", "options", "publish", "stream", "trainer")


def make(folder: Path) -> Path:
    """Write the package into a folder, which is to be on Python's path; return that folder."""
    package = folder / "clicks"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for name in KEPT:
        text = (SOURCE / f"{name}.py").read_text(encoding="utf-8")
        text = text.replace("ettwatch_trainer", "clicks").replace('number("ETTWATCH_ATTEMPT", 0) + ', "")
        text = text.replace("torchrun and `ettwatch run` tell their children", "torchrun tells its children")
        text = re.sub("ettwatch.?demo|watched by ettwatch", "clicks", text)
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    compiling = (SOURCE / "compiling.py").read_text(encoding="utf-8").partition("class CompileWatch")[0]
    (package / "compiling.py").write_text(compiling.replace("from ettwatch import Recorder\n", ""), encoding="utf-8")
    for name, source in (("job", "job"), ("marks", "marks"), ("__main__", "main")):
        (package / f"{name}.py").write_text((HERE / f"{source}.txt").read_text(encoding="utf-8"), encoding="utf-8")
    lines = [line for path in package.iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    assert not [line for line in lines if "ettwatch" in line.lower()]
    return folder


def noted(out: Path, launched: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events as the trainer would have told them by hand, from its marks; `launched`: what its launcher told."""
    (job,) = {event["job"] for event in launched}
    marks = [json.loads(line) for path in sorted(out.glob("marks-*.jsonl")) for line in path.read_text().splitlines()]
    return launched + [{"v": 1, "id": f"mark-{number}", "job": job, **mark} for number, mark in enumerate(marks)]


def torchrun(module: str, config: TrainerConfig) -> list[str]:
    """The command of one attempt with all ranks on this machine."""
    argv = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    return [*argv, "--nproc-per-node", str(config.ranks), "-m", module, *config.arguments()]
