"""Random legal events of every kind, one plain event to spoil, and plain summaries."""

import json
from typing import Any

from hypothesis import strategies as st

from ettwatch_schemas import COMPONENTS, EVENT_TYPES, MAX_TS, MIN_TS, BaseEvent, Event

TS = 1_790_000_000_000_000
"""A time in 2026, in microseconds."""

_text = st.text(max_size=20)
_key = st.text(min_size=1, max_size=20)
_count = st.integers(0, 2**31 - 1)
_amount = st.integers(0, 2**63 - 1)
_ts = st.integers(MIN_TS, MAX_TS)
_part = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=8)
_scalar = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _text
)
_json = st.recursive(
    _scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)


def phases() -> st.SearchStrategy[str]:
    """Legal phase names: a component, or known and unknown sub-stages of one."""
    parts = st.lists(_part, max_size=3)
    return st.builds(lambda component, rest: ".".join([component, *rest]), st.sampled_from(COMPONENTS), parts)


# The values of every field that does not draw them from its own Literal type.
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": _key,
    "job": _key,
    "ts": _ts,
    "attempt": _count,
    "rank": _count,
    "host": _text,
    "team": _text,
    "model": _text,
    "cluster": _text,
    "gpus": _count,
    "eligible_ts": _ts,
    "labels": st.dictionaries(_text, _text, max_size=3),
    "world_size": _count,
    "span": _key,
    "phase": phases(),
    "parent": _key,
    "background": st.booleans(),
    "attrs": st.dictionaries(_text, _json, max_size=3),
    "position": _amount,
    "step": _amount,
    "data_wait_us": _amount,
    "report_every_s": st.floats(min_value=0, max_value=31_536_000, exclude_min=True) | st.integers(1, 100),
    "bytes": _amount,
    "started_ts": _ts,
    "exit_code": st.integers(-255, 255),
    "signal": st.integers(0, 64),
    "message": st.text(max_size=200),
}


def events_of(model: type[BaseEvent], job: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Any]:
    """Events of one kind, with every optional field there or not."""
    needed: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for name, field in model.model_fields.items():
        if name in ("v", "kind"):
            continue
        values = _FIELDS.get(name)
        if values is None:
            values = st.from_type(field.annotation)  # type: ignore[arg-type]
        if name == "job" and job is not None:
            values = job
        (needed if field.is_required() else optional)[name] = values
    return st.fixed_dictionaries(needed, optional=optional).map(model.model_validate)


def events(job: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Event]:
    """Events of every kind; of the jobs that `job` draws, if given."""
    return st.one_of([events_of(model, job) for model in EVENT_TYPES])


def plain(**changes: object) -> dict[str, Any]:
    """Return a legal progress event as a dict, with some fields changed, or left out where `...` is given."""
    event: dict[str, object] = {
        "v": 1,
        "id": "e1",
        "kind": "progress",
        "job": "j1",
        "ts": TS,
        "attempt": 0,
        "position": 100,
    }
    return {name: value for name, value in (event | changes).items() if value is not ...}


def wire(**changes: object) -> bytes:
    """Return the same as JSON, NaN and Infinity included."""
    return json.dumps(plain(**changes)).encode()


_NONE_LOST = dict.fromkeys(COMPONENTS, 0.0)

ATTEMPT: dict[str, Any] = {
    "job": "j1",
    "attempt": 0,
    "start": TS,
    "end": TS + 100_000_000,
    "open": False,
    "outcome": "failed",
    "cause": "hardware",
    "exit_code": -9,
    "signal": 9,
    "message": "killed",
    "trigger": "initial",
    "gpus": 8,
    "world_size": 8,
    "trained": True,
    "loop_start": TS + 10_000_000,
    "first_batch": TS + 10_000_000,
    "last_advance": TS + 90_000_000,
    "loop_end": TS + 100_000_000,
    "start_position": 0,
    "end_position": 800,
    "tts_s": 10.0,
    "ttr_s": None,
    "recovery_s": 0.0,
    "effective_s": 80.0,
    "components": _NONE_LOST | {"trainer_init": 10.0, "wasted_training": 10.0},
    "stages": {"trainer_init": 10.0, "effective_training": 80.0, "wasted_training.no_progress": 10.0},
    "hidden_s": {},
    "unsaved_s": 80.0,
    "flags": [],
}
"""A value for every field of AttemptSummary."""

JOB: dict[str, Any] = {
    "job": "j1",
    "version": 5,
    "rules_version": "1",
    "team": "ads",
    "model": None,
    "cluster": None,
    "labels": {"a": "b"},
    "status": "failed",
    "attempts": 1,
    "gpus": 8,
    "t0": TS,
    "t1": TS + 100_000_000,
    "e2e_s": 100.0,
    "effective_s": 80.0,
    "ett_pct": 80.0,
    "tts_s": 10.0,
    "ttr_s": [],
    "recovery_s": 0.0,
    "nof": 1,
    "nof_infra": 1,
    "nof_preempted": 0,
    "components": ATTEMPT["components"],
    "stages": ATTEMPT["stages"],
    "hidden_s": {},
    "gpu_effective_s": 640.0,
    "gpu_e2e_s": 800.0,
    "gpu_held_s": 800.0,
    "unsaved_s": 80.0,
    "flags": [],
}
"""A value for every field of JobSummary."""
