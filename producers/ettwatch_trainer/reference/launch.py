"""How the reference trainer is started: torchrun's command line under `ettwatch run`. Needs no torch."""

from __future__ import annotations

import sys

from ettwatch_trainer.reference.config import ReferenceConfig

RESTARTS = 2
MODULE = "ettwatch_trainer.reference"


def attempt_command(config: ReferenceConfig, *, python: str = sys.executable) -> tuple[list[str], dict[str, str]]:
    """The command of one torchrun, and the variables to add to the environment it runs in.

    With cheap recovery torchrun restarts ranks in place. Without it the whole job is started anew, by `job_command`.
    """
    restarts = RESTARTS if config.cheap_recovery else 0
    argv = [python, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    argv += ["--max-restarts", str(restarts), "--monitor-interval", "0.1"]
    argv += ["--nproc-per-node", str(config.ranks), "-m", MODULE, *config.arguments()]
    return argv, environment()


def job_command(config: ReferenceConfig, *, job: str, python: str = sys.executable) -> tuple[list[str], dict[str, str]]:
    """The command of the whole job under `ettwatch run`, restarts included; and the variables, as above."""
    argv, variables = attempt_command(config, python=python)
    launcher = [python, "-m", "ettwatch.cli", "run", "--job", job, "--team", "reference", "--model", "reference-dlrm"]
    launcher += ["--cluster", "local", "--gpus", str(config.ranks)]
    launcher += ["--max-restarts", "0" if config.cheap_recovery else str(RESTARTS), "--"]
    return [*launcher, *argv], variables


def environment() -> dict[str, str]:
    """The variables to add to the environment of torchrun. The same for every switch, so that runs can be compared."""
    return {
        "OMP_NUM_THREADS": "1",  # ranks share the cores: threads would wait for each other
        "TORCH_WARM_POOL": "0",  # compile workers are for Triton, and each imports torch
        "TORCHINDUCTOR_VEC_ISA_OK": "1",  # spares the probe of the CPU's vectors, in all variants
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        # The agent's own store keeps the addresses of dead ranks, which a gloo restart in place would read.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
