"""Slurm: `SLURM_*`."""

from collections.abc import Mapping

from ettwatch.names import MAX_COUNT
from ettwatch.numbers import from_env
from ettwatch.schedulers.told import Told, job_name, submit_stamp


def tell(env: Mapping[str, str]) -> Told:
    """Return what Slurm says. Raises BadIdentity where a number is none."""
    number, cluster = env.get("SLURM_JOB_ID"), env.get("SLURM_CLUSTER_NAME")
    return Told(
        job=job_name(
            cluster or env.get("ETTWATCH_CLUSTER") or "slurm", _job_id(env, number), submitted=submit_stamp(env)
        )
        if number
        else None,
        attempt=from_env(env, "SLURM_RESTART_COUNT"),
        rank=from_env(env, "SLURM_PROCID"),
        world_size=from_env(env, "SLURM_STEP_NUM_TASKS"),
        gpus=_gpus(env),
        cluster=cluster,
        ids=tuple(filter(None, (number, env.get("SLURM_ARRAY_JOB_ID")))),
    )


def _job_id(env: Mapping[str, str], number: str) -> str:
    array, task = env.get("SLURM_ARRAY_JOB_ID"), env.get("SLURM_ARRAY_TASK_ID")
    if array and task:
        return f"{array}_{task}"
    het, offset = env.get("SLURM_HET_JOB_ID"), env.get("SLURM_HET_JOB_OFFSET")
    return het if het and offset else number  # the parts of one heterogeneous job are one job


def _gpus(env: Mapping[str, str]) -> int | None:
    for name in ("SLURM_GPUS", "SLURM_GPUS_ON_NODE"):
        text = env.get(name, "").rpartition(":")[2]
        if text.isdecimal():
            nodes = env.get("SLURM_NNODES", "1") if name == "SLURM_GPUS_ON_NODE" else "1"
            return min(int(text) * (int(nodes) if nodes.isdecimal() else 1), MAX_COUNT)
    return None
