import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ettwatch_trainer import launch
from ettwatch_trainer.config import TrainerConfig, demo, parse, parser, settings
from ettwatch_trainer.options import ConfigError, option_name


def test_the_command_line_of_a_config_reads_back_as_that_config(tmp_path: Path) -> None:
    config = TrainerConfig(out=tmp_path, steps=7, compile=False, slow_read_s=0.25)
    assert parse(config.arguments()) == config
    assert parse(demo(tmp_path).arguments()) == demo(tmp_path)
    assert parse([]) == TrainerConfig()
    assert TrainerConfig().arguments() == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "--steps: 0 cannot be; give a number of at least 1"),
        ({"checkpoint_every": -1}, "--checkpoint-every: -1 cannot be"),
        ({"learning_rate": math.nan}, "--learning-rate: nan cannot be"),
        ({"open_s": math.inf}, "--open-s: inf cannot be"),
        ({"steps": 5, "kill_at_step": 6}, "--kill-at-step: 6 is after the last step"),
        ({"kill_at_step": 6, "fail_rank": 2}, "--fail-rank: there is no rank 2; give less than --ranks (2)"),
    ],
)
def test_a_setting_that_cannot_work_is_named(settings: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainerConfig(**settings)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_a_wrong_command_line_exits_with_2_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(["--batch", "0"])
    assert caught.value.code == 2
    assert "--batch: 0 cannot be" in capsys.readouterr().err


def test_help_names_every_setting_with_its_meaning() -> None:
    text = " ".join(parser().format_help().split())
    for name, (_, about) in settings().items():
        assert option_name(name) in text
        assert about.text in text


def test_the_demo_kills_a_rank_well_after_a_checkpoint(tmp_path: Path) -> None:
    config = demo(tmp_path)
    assert 0 < config.kill_at_step < config.steps
    assert config.fail_rank < config.ranks
    assert config.kill_at_step % config.checkpoint_every > 40


def test_the_launch_command_is_torchrun_on_the_given_ranks(changed: Callable[..., TrainerConfig]) -> None:
    config = changed(ranks=3, kill_at_step=12)
    argv, environment = launch.command(config)
    assert argv[:3] == [sys.executable, "-m", "torch.distributed.run"]
    assert argv[argv.index("--nproc-per-node") + 1] == "3"
    assert argv[argv.index("--max-restarts") + 1] == "0"
    program = argv.index("ettwatch_trainer")
    assert argv[program - 1] == "-m"
    assert parse(argv[program + 1 :]) == config
    assert environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert environment["OMP_NUM_THREADS"] == "1"
    assert Path(environment["TORCHINDUCTOR_CACHE_DIR"]).is_absolute()
    assert Path(environment["TORCHINDUCTOR_CACHE_DIR"]).is_relative_to(config.out.absolute())


def test_launching_and_help_need_no_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    script = """
import runpy, sys
from pathlib import Path
from ettwatch_trainer import launch
from ettwatch_trainer.config import demo
print(len(launch.command(demo(Path("x")))[0]))
sys.argv = ["ettwatch_trainer", "--help"]
runpy.run_module("ettwatch_trainer", run_name="__main__")
"""
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--kill-at-step" in done.stdout
