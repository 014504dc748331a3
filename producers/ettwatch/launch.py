"""One start of a job without a launcher: what its ranks on one machine share, and no other start has."""

import os
from collections.abc import Mapping


def of_process(pid: int) -> str:
    """Return what names a process of this machine: its number, and when it was started, in ticks since the boot."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            started = file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = "0"
    return f"{pid}-{started}"


def spans_machines(env: Mapping[str, str]) -> bool:
    """Tell whether ranks of this job run on other machines, or may do so."""
    world, local = env.get("WORLD_SIZE", "1"), env.get("LOCAL_WORLD_SIZE")
    if env.get("SLURM_PROCID") and "RANK" not in env:
        return env.get("SLURM_STEP_NUM_NODES", env.get("SLURM_NNODES", "1")) != "1"
    if "RANK" not in env:
        return any(env.get(name, "1") != "1" for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")) or bool(
            env.get("JOB_COMPLETION_INDEX")
        )
    return world not in ("1", local)


def launch_of(env: Mapping[str, str]) -> str:
    """Return a name of this start that all its ranks of this machine agree on."""
    if env.get("TORCHELASTIC_RUN_ID"):
        return f"agent-{of_process(os.getppid())}-{env.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    if env.get("SLURM_STEP_ID"):
        names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
        return "step-" + "-".join(env.get(name, "0") for name in names)
    if env.get("WORLD_SIZE", "1") != "1":
        return f"group-{of_process(os.getppid())}-{env.get('MASTER_ADDR')}:{env.get('MASTER_PORT')}"
    return f"{ALONE}{of_process(os.getpid())}"


ALONE = "process-"
"""What the name of a start of one process begins with."""
