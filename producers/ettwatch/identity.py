"""Who speaks: job, attempt, rank and the rest, from what is given, ETTWATCH_*, torchelastic and Slurm.

docs/instrument.md has the rules for people.
"""

import os
import time
from collections.abc import Mapping
from typing import NamedTuple

from ettwatch.log import warn
from ettwatch.names import MAX_COUNT, MAX_NAME_CHARS
from ettwatch.settings import flag
from ettwatch.wire import tidy_job, tidy_text


class BadIdentity(ValueError):
    """Job, attempt or rank is malformed: events under it would be filed wrongly."""


class Given(NamedTuple):
    """What the caller of `init` says himself; None where he leaves it to the environment."""

    job: str | None = None
    team: str | None = None
    model: str | None = None
    cluster: str | None = None
    gpus: int | None = None
    labels: Mapping[str, str] | None = None
    attempt: int | None = None
    rank: int | None = None


class Identity(NamedTuple):
    """Who speaks, for which job and attempt."""

    job: str
    attempt: int
    rank: int
    host: str
    team: str | None = None
    model: str | None = None
    cluster: str | None = None
    gpus: int | None = None
    labels: dict[str, str] | None = None
    world_size: int | None = None
    named: bool = True
    """Somebody named the job; False: its name was generated and will not come again."""
    launched: bool = False
    """A launcher tells start and end of the job."""
    elastic_restart: int = 0
    """How often torchelastic has restarted the ranks since it was started."""
    elastic_retries: bool = False
    """torchelastic will start the ranks again if they fail now."""
    run_dir: str | None = None
    """Where the launcher looks for word of its ranks."""


def whole(name: str, value: object, least: int = 0) -> int:
    """Return `value`, a number or its text, as an int from `least` to 2**31 - 1; else raise BadIdentity."""
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not least <= number <= MAX_COUNT:
        raise BadIdentity(f"{name}={value!r} is not a whole number from {least}")
    return number


def from_env(env: Mapping[str, str], name: str, least: int = 0) -> int | None:
    """Return an environment variable as an int, None if it is not set or empty; else raise BadIdentity."""
    text = env.get(name, "").strip()
    return whole(name, text, least) if text else None


def read_labels(text: str) -> dict[str, str]:
    """Return `name=value,name=value` as a dict; parts without `=` are warned of and left out."""
    labels = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if equals and name.strip():
            labels[name.strip()] = value.strip()
        else:
            warn("setting:ETTWATCH_LABELS", f"ETTWATCH_LABELS: {part!r} is not name=value; it is left out")
    return labels


def slurm_job(env: Mapping[str, str]) -> str | None:
    """Return the name of the Slurm job that this process is part of: cluster and id, with the array's index."""
    number = env.get("SLURM_JOB_ID")
    if not number:
        return None
    array, task = env.get("SLURM_ARRAY_JOB_ID"), env.get("SLURM_ARRAY_TASK_ID")
    return f"{env.get('SLURM_CLUSTER_NAME') or 'slurm'}-{f'{array}_{task}' if array and task else number}"


def gpus_from(env: Mapping[str, str]) -> int | None:
    """Return how many GPUs Slurm gave to the job, or, without Slurm, one for each rank; None if nobody says."""
    for name in ("SLURM_GPUS", "SLURM_GPUS_ON_NODE"):
        text = env.get(name, "").rpartition(":")[2]
        if text.isdecimal():
            nodes = env.get("SLURM_NNODES", "1") if name == "SLURM_GPUS_ON_NODE" else "1"
            return min(int(text) * (int(nodes) if nodes.isdecimal() else 1), MAX_COUNT)
    world = env.get("WORLD_SIZE", "")
    return min(int(world), MAX_COUNT) if world.isdecimal() else None


def generated_job(host: str, env: Mapping[str, str]) -> str:
    """Return a name for a job that nobody named: `<host>-<pid>-<time>`; under torchrun that of its agent."""
    if "RANK" not in env:
        return f"{host}-{os.getpid()}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    if env.get("LOCAL_WORLD_SIZE", env.get("WORLD_SIZE")) != env.get("WORLD_SIZE"):
        warn("job", "the ranks on other machines cannot know this job's generated name: set ETTWATCH_JOB")
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", encoding="utf-8", errors="replace") as file:
            started = file.read().rpartition(")")[2].split()[19]  # ticks from boot to the agent's start
    except (OSError, IndexError):
        started = "0"
    return f"{host}-{parent}-{started}"


def _attempt(given: Given, env: Mapping[str, str], elastic: int) -> int:
    if given.attempt is not None:
        return whole("attempt", given.attempt)
    told = from_env(env, "ETTWATCH_ATTEMPT")
    if told is None:
        # Numbers of a requeued job go on where the restarts of torchelastic could have come to.
        retries = from_env(env, "TORCHELASTIC_MAX_RESTARTS") or 0
        told = (from_env(env, "SLURM_RESTART_COUNT") or 0) * (retries + 1)
    return min(told + elastic, MAX_COUNT)


def _rank(given: Given, env: Mapping[str, str]) -> int:
    if given.rank is not None:
        return whole("rank", given.rank)
    for name in ("ETTWATCH_RANK", "RANK", "SLURM_PROCID"):
        rank = from_env(env, name)
        if rank is not None:
            return rank
    return 0


def _name(given: str | None, *told: str | None) -> str | None:
    text = given if given is not None else next(filter(None, told), None)
    return tidy_text(str(text), MAX_NAME_CHARS) if text else None


def _labels(given: Given, env: Mapping[str, str]) -> dict[str, str] | None:
    labels = given.labels if given.labels is not None else read_labels(env.get("ETTWATCH_LABELS", ""))
    tidy = {tidy_text(str(k), MAX_NAME_CHARS): tidy_text(str(v)) for k, v in list(labels.items())[:256]}
    return tidy or None


def _gpus(given: Given, env: Mapping[str, str]) -> int | None:
    if given.gpus is not None:
        return whole("gpus", given.gpus)
    told = from_env(env, "ETTWATCH_GPUS")
    return gpus_from(env) if told is None else told


def resolve(given: Given, env: Mapping[str, str]) -> Identity:
    """Work out who speaks. Raises BadIdentity where job, attempt, rank or gpus is malformed.

    What is given counts first, then ETTWATCH_*, torchelastic, Slurm, and last a generated name. Under a launcher
    its job and attempt count, whatever is given: it tells their start and end.
    """
    launched = flag(env, "ETTWATCH_LAUNCHER") and bool(env.get("ETTWATCH_JOB"))
    if launched:
        for name, value in (("job", given.job), ("attempt", given.attempt)):
            told = env.get(f"ETTWATCH_{name.upper()}")
            if value is not None and str(value) != told:
                warn(f"launched:{name}", f"{name}={value!r} is not {told!r} of `ettwatch run`, which counts")
        given = given._replace(job=None, attempt=None)
    if given.job is not None and (not isinstance(given.job, str) or not given.job):
        raise BadIdentity(f"job={given.job!r} is not a text of at least one character")
    host = tidy_text(os.uname().nodename, 255) or "localhost"
    elastic_id = env.get("TORCHELASTIC_RUN_ID")
    elastic = from_env(env, "TORCHELASTIC_RESTART_COUNT") or 0
    job = given.job or env.get("ETTWATCH_JOB") or (elastic_id if elastic_id != "none" else None) or slurm_job(env)
    return Identity(
        job=tidy_job(job or generated_job(host, env)),
        attempt=_attempt(given, env, elastic),
        rank=_rank(given, env),
        host=host,
        team=_name(given.team, env.get("ETTWATCH_TEAM")),
        model=_name(given.model, env.get("ETTWATCH_MODEL")),
        cluster=_name(given.cluster, env.get("ETTWATCH_CLUSTER"), env.get("SLURM_CLUSTER_NAME")),
        gpus=_gpus(given, env),
        labels=_labels(given, env),
        world_size=from_env(env, "WORLD_SIZE") or from_env(env, "SLURM_STEP_NUM_TASKS"),
        named=bool(job),
        launched=launched,
        elastic_restart=elastic,
        elastic_retries=elastic < (from_env(env, "TORCHELASTIC_MAX_RESTARTS") or 0),
        run_dir=env.get("ETTWATCH_RUN_DIR") if launched else None,
    )
