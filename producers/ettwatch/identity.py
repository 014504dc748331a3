"""Who speaks: job, attempt, rank and the rest, from what is given, ETTWATCH_*, torchelastic and the scheduler.

docs/identity.md has the rules for people.
"""

import os
import time
from collections.abc import Mapping
from typing import NamedTuple

from ettwatch.book import enlist
from ettwatch.launch import launch_of, of_process, spans_machines
from ettwatch.log import trouble, warn
from ettwatch.names import MAX_COUNT, MAX_NAME_CHARS
from ettwatch.numbers import BadIdentity, from_env, whole
from ettwatch.schedulers.told import Told
from ettwatch.settings import flag
from ettwatch.wire import plain, shown, tidy_job, tidy_text

__all__ = ["BadIdentity", "Given", "Identity", "from_env", "requeues", "resolve"]


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
    booked: bool = False
    """The attempt has its number from the book of the spool folder."""


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


def told_by_scheduler(env: Mapping[str, str]) -> Told:
    """Return what the scheduler says under which this process runs; nothing where there is none."""
    if any(name.startswith("SLURM_") for name in env):
        from ettwatch.schedulers import slurm

        return slurm.tell(env)
    if env.get("RAY_JOB_ID") or env.get("RAY_JOB_CONFIG_JSON_ENV_VAR"):
        from ettwatch.schedulers import ray

        return ray.tell(env)
    if env.get("KUBERNETES_SERVICE_HOST") or env.get("ETTWATCH_PODINFO"):
        from ettwatch.schedulers import kubernetes

        return kubernetes.tell(env)
    return Told()


def requeues(env: Mapping[str, str]) -> int:
    """Return how often the scheduler has started this job again, as all of its ranks see it. Raises BadIdentity."""
    return told_by_scheduler(env).attempt or 0


def generated_job(host: str, env: Mapping[str, str]) -> str:
    """Return a name for a job that nobody named: `<host>-<pid>-<time>`; under torchrun that of its agent."""
    if "RANK" not in env:
        return f"{host}-{os.getpid()}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    if env.get("LOCAL_WORLD_SIZE", env.get("WORLD_SIZE")) != env.get("WORLD_SIZE"):
        warn("job", "the ranks on other machines cannot know this job's generated name: set ETTWATCH_JOB")
    return f"{host}-{of_process(os.getppid())}"


def _attempt(given: Given, env: Mapping[str, str], told: Told, elastic: int) -> int:
    if given.attempt is not None:
        return whole("attempt", given.attempt)
    retries = from_env(env, "TORCHELASTIC_MAX_RESTARTS") or 0
    if retries and spans_machines(env) and env.get("GROUP_RANK", "0") != "0":
        raise BadIdentity(
            "each agent of torchrun counts its own restarts, so the attempt is known only where rank 0 is: "
            "let `ettwatch run --max-restarts` around the whole job restart it, or give attempt to init"
        )
    first = from_env(env, "ETTWATCH_ATTEMPT")
    if first is None:
        # Numbers of a requeued job go on where the restarts of torchelastic could have come to.
        first = (told.attempt or 0) * (retries + 1)
    return min(first + elastic, MAX_COUNT)


def _rank(given: Given, env: Mapping[str, str], told: Told) -> int:
    if given.rank is not None:
        return whole("rank", given.rank)
    for name in ("ETTWATCH_RANK", "RANK"):
        rank = from_env(env, name)
        if rank is not None:
            return rank
    if told.rank is not None:
        return told.rank
    return next(filter(None, (from_env(env, name) for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"))), 0)


def _name(given: str | None, *told: str | None) -> str | None:
    text = given if given is not None else next(filter(None, told), None)
    return plain(text, MAX_NAME_CHARS) if text is not None and text != "" else None


def _labels(given: Given, env: Mapping[str, str], told: Told) -> dict[str, str] | None:
    own = given.labels if given.labels is not None else read_labels(env.get("ETTWATCH_LABELS", ""))
    if not isinstance(own, Mapping):
        warn("labels", f"labels={shown(own)} are no names with values; they are left out")
        own = {}
    labels = {**told.labels, **own}
    tidy = {plain(k, MAX_NAME_CHARS): plain(v) for k, v in list(labels.items())[:256]}
    return tidy or None


def _gpus(given: Given, env: Mapping[str, str], told: Told) -> int | None:
    if given.gpus is not None:
        return whole("gpus", given.gpus)
    said = from_env(env, "ETTWATCH_GPUS")
    if said is not None or told.gpus is not None:
        return said if said is not None else told.gpus
    world = env.get("WORLD_SIZE", "")
    return min(int(world), MAX_COUNT) if world.isdecimal() else None


def _job(given: Given, env: Mapping[str, str], told: Told) -> str | None:
    elastic = env.get("TORCHELASTIC_RUN_ID")
    if elastic == "none" or elastic in told.ids:  # as in torchrun --rdzv-id=$SLURM_JOB_ID
        elastic = None
    return given.job or env.get("ETTWATCH_JOB") or elastic or told.job


def resolve(given: Given, env: Mapping[str, str], spool: str | None = None) -> Identity:
    """Work out who speaks. Raises BadIdentity where job, attempt, rank or gpus is malformed.

    What is given counts first, then ETTWATCH_*, torchelastic, the scheduler, and last a generated name. Under a
    launcher its job and attempt count, whatever is given: it tells their start and end. Without one, the attempts of
    a job of one machine are numbered by the book in the folder `spool`, if that is given.
    """
    launched = flag(env, "ETTWATCH_LAUNCHER") and bool(env.get("ETTWATCH_JOB"))
    if launched:
        for name, value in (("job", given.job), ("attempt", given.attempt)):
            handed = env.get(f"ETTWATCH_{name.upper()}")
            if value is not None and plain(value) != handed:
                warn(f"launched:{name}", f"{name}={shown(value)} is not {handed!r} of `ettwatch run`, which counts")
        given = given._replace(job=None, attempt=None)
    if given.job is not None and (not isinstance(given.job, str) or not given.job):
        raise BadIdentity(f"job={shown(given.job)} is not a text of at least one character")
    told = told_by_scheduler(env)
    host = tidy_text(os.uname().nodename, 255) or "localhost"
    elastic = from_env(env, "TORCHELASTIC_RESTART_COUNT") or 0
    job = _job(given, env, told)
    worlds = (from_env(env, name) for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
    found = Identity(
        job=tidy_job(job or generated_job(host, env)),
        attempt=_attempt(given, env, told, elastic),
        rank=_rank(given, env, told),
        host=host,
        team=_name(given.team, env.get("ETTWATCH_TEAM")),
        model=_name(given.model, env.get("ETTWATCH_MODEL")),
        cluster=_name(given.cluster, env.get("ETTWATCH_CLUSTER"), told.cluster),
        gpus=_gpus(given, env, told),
        labels=_labels(given, env, told),
        world_size=next(filter(None, worlds), told.world_size),
        named=bool(job),
        launched=launched,
        elastic_restart=elastic,
        elastic_retries=elastic < (from_env(env, "TORCHELASTIC_MAX_RESTARTS") or 0),
        run_dir=env.get("ETTWATCH_RUN_DIR") if launched else None,
    )
    numbered = launched or not job or given.attempt is not None or bool(env.get("ETTWATCH_ATTEMPT"))
    if spool is None or numbered or spans_machines(env):
        return found
    try:
        return found._replace(attempt=enlist(spool, found.job, found.attempt, launch_of(env)), booked=True)
    except OSError as error:
        trouble(f"keeping the numbers of attempts in {spool}", error)
        return found
