"""How the trainer is started with several ranks: torchrun's command line and what it needs in the environment.

Needs no torch, so that a program can offer the demo and then say that torch is missing.
"""

from __future__ import annotations

import sys

from ettwatch_trainer.config import TrainerConfig

# What the demo job is called.
JOB, TEAM, MODEL, CLUSTER = "demo-ctr", "ads", "demo-dlrm", "local"
RESTARTS = 2


def command(config: TrainerConfig, *, python: str = sys.executable) -> tuple[list[str], dict[str, str]]:
    """The command of one attempt, and the variables to add to the environment it runs in.

    torchrun itself restarts nothing: each attempt is a process of its own, started by `ettwatch run`.
    """
    argv = [python, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--max-restarts", "0"]
    argv += ["--nproc-per-node", str(config.ranks), "-m", "ettwatch_trainer", *config.arguments()]
    return argv, environment(config)


def job_command(config: TrainerConfig, *, python: str = sys.executable) -> tuple[list[str], dict[str, str]]:
    """The command of the whole demo job under `ettwatch run`, restarts included; and the variables, as above."""
    argv, variables = command(config, python=python)
    launcher = [python, "-m", "ettwatch.cli", "run", "--job", JOB, "--team", TEAM, "--model", MODEL]
    launcher += ["--cluster", CLUSTER, "--gpus", str(config.ranks), "--max-restarts", str(RESTARTS), "--"]
    return [*launcher, *argv], variables


def environment(config: TrainerConfig) -> dict[str, str]:
    """The variables to add to the environment of torchrun."""
    return {
        # The model is small, and a container may have fewer cores than it sees: threads would wait for each other.
        "OMP_NUM_THREADS": "1",
        # The pool of compile workers is for Triton; without a GPU each would import torch for nothing.
        "TORCH_WARM_POOL": "0",
        # Without it torch finds out whether the compiler knows this CPU's vectors by building and loading a program
        # or two, for seconds that say nothing of this job. The CPU's own flags are looked at all the same.
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        # A restarted attempt finds what the one before it has compiled.
        "TORCHINDUCTOR_CACHE_DIR": str(config.compile_cache.absolute()),
        # All ranks are on this machine, as the command says: a host name that does not resolve must not stop them.
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        # The agent's own store keeps the addresses of dead ranks, which a gloo restart would read.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
