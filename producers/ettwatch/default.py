"""The recorder of this process: made once by `init`, found from anywhere by `get`."""

import os
from collections.abc import Mapping

from ettwatch.clock import Clock
from ettwatch.identity import BadIdentity, Given, resolve
from ettwatch.log import trouble, warn
from ettwatch.noop import NoRecorder
from ettwatch.recorder import Recorder
from ettwatch.settings import read
from ettwatch.spans import Phase

_nothing = NoRecorder()
_default: Recorder = _nothing


def get() -> Recorder:
    """Return the recorder that `init` made; before that, one that records nothing."""
    return _default


def phase(name: str, *, background: bool = False, attrs: Mapping[str, object] | None = None) -> Phase:
    """Return a phase of the recorder that there is when the block is entered or the function called.

    For decorators, which are applied before `init` runs.
    """
    return Phase(lambda: get()._phase_outbox(), name, background, attrs)


def init(
    job: str | None = None,
    team: str | None = None,
    model: str | None = None,
    cluster: str | None = None,
    gpus: int | None = None,
    labels: Mapping[str, str] | None = None,
    attempt: int | None = None,
    rank: int | None = None,
    spool: str | os.PathLike[str] | None = None,
) -> Recorder:
    """Begin to record, and return the recorder. What is not given comes from the environment.

    Call it first thing, in the process that trains. Called again before the attempt has ended it returns the
    recorder that there is. It raises nothing: where recording is switched off (ETTWATCH_DISABLED=1) or job,
    attempt, rank or gpus is malformed, what it returns records nothing.
    """
    global _default
    if _default.enabled:
        warn("init", "init() was called before; its recorder is returned, and the arguments are not used")
        return _default
    given = Given(job, team, model, cluster, gpus, labels, attempt, rank)
    _default = open_recorder(given, os.environ, spool)
    return _default


def open_recorder(given: Given, env: Mapping[str, str], spool: str | os.PathLike[str] | None = None) -> Recorder:
    """Return a started recorder, or one that records nothing where it must not or cannot."""
    try:
        settings = read(env, spool)
        if settings.disabled:
            return _nothing
        recorder = Recorder(resolve(given, env, settings.spool), settings, Clock.take_over(env.get("ETTWATCH_CLOCK")))
        recorder._life.begin()
    except BadIdentity as error:
        warn("identity", f"{error}; nothing is recorded")
        return _nothing
    except Exception as error:
        trouble("init", error)
        return _nothing
    return recorder
