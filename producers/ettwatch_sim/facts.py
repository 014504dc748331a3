"""What a pipeline would say of a simulated fleet: starts, failures, ends, hours. And what was injected into it.

Times named `ts` are microseconds since the Unix epoch, UTC; names that end in `_s`, and values of stages, are seconds.
Stages carry the names of the taxonomy, and `effective_training`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An attempt that began to train.

    Attributes:
        ts: Its first batch.
        host: The host whose rank came last in start-up; where all were alike, the host of rank 0.
        attempt: Its number, from 0.
        gpus: GPUs of the attempt.
        first: Whether `seconds` is a time to start (attempt 0), not a time to recover.
        seconds: TTS, from allocation to `ts`; or TTR, from the interruption of the attempt before to `ts`.
        stages: How `seconds` divide over stages; they add up to it, unless attempts that never trained lie between.
        cache_hit: Whether compiled code was found in a cache; None where nothing is compiled.
    """

    ts: int
    team: str
    model: str
    cluster: str
    host: str
    job: str
    attempt: int
    gpus: int
    first: bool
    seconds: float
    stages: dict[str, float]
    cache_hit: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An attempt that ended `failed` or `preempted`.

    Attributes:
        ts: Its end.
        gpus: GPUs of the attempt.
        cause: Why, in the words of `attempt_ended`.
        gpu_hours_before: GPU-hours that this attempt held until it ended.
        outcome: `failed` or `preempted`.
        host: The host that is to blame, or that of rank 0.
        trained: Whether it had an advance.
    """

    ts: int
    team: str
    model: str
    cluster: str
    job: str
    attempt: int
    gpus: int
    cause: str
    gpu_hours_before: float
    outcome: str
    host: str
    trained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDone:
    """A job that is over.

    Attributes:
        ts: Its end (T1).
        t0: Its beginning (T0).
        gpus: GPUs of the last attempt.
        outcome: `succeeded`, `failed` or `cancelled`.
        e2e_s: End-to-end wall time.
        effective_s: Effective training time.
        tts_s: Time to start; None where attempt 0 never trained.
        ttr_s: Times to recover, one for each later attempt that trained.
        recovery_s: Time of all recoveries, also of those that came to nothing.
        nof: Attempts that ended `failed` or `preempted`; `nof_infra` and `nof_preempted` are parts of it.
        stages: Seconds by stage, `effective_training` included; they add up to `e2e_s`.
        gpu_held_s: GPU-seconds held, which is without `scheduling`.
        gpu_e2e_s: GPU-seconds of the whole life.
        gpu_effective_s: GPU-seconds of effective training.
        unsaved_s: In-loop seconds that failures threw away.
    """

    ts: int
    t0: int
    team: str
    model: str
    cluster: str
    job: str
    gpus: int
    attempts: int
    outcome: str
    e2e_s: float
    effective_s: float
    tts_s: float | None
    ttr_s: tuple[float, ...]
    recovery_s: float
    nof: int
    nof_infra: int
    nof_preempted: int
    stages: dict[str, float]
    gpu_held_s: float
    gpu_e2e_s: float
    gpu_effective_s: float
    unsaved_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """One hour of one team, model and cluster.

    Attributes:
        ts: The beginning of the hour.
        gpu_s: GPU-seconds by stage, `effective_training` included. Those of `scheduling` were waited for, not held.
    """

    ts: int
    team: str
    model: str
    cluster: str
    gpu_s: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """Ground truth: something that was made worse (or better) on purpose.

    A scope that is None is all of them.

    Attributes:
        name: The name of the injection in its scenario.
        what: `stage`, `failures`, `cold_caches`, `saves` or `queue`.
        stage: The stage, or the prefix of stages, that `stage` changes.
        since: From when, in microseconds.
        until: Until when; None is to the end.
        factor: By how much it is multiplied; above 1 is worse. Of `cold_caches`: the share of starts that are cold.
        cause: The cause of failures that `failures` changes; None is all.
    """

    name: str
    what: str
    since: int
    until: int | None = None
    factor: float
    stage: str | None = None
    cause: str | None = None
    team: str | None = None
    model: str | None = None
    cluster: str | None = None
    host: str | None = None


Fact = Start | Failure | JobDone | Hours
"""What `summaries` yields."""
