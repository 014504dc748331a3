"""Entries of Google's ml-goodput-measurement, as its recorder logs them: JSON objects with one time each.

Format: ml_goodput_measurement/src/goodput.py. Times are seconds since the epoch. A step is told when it *starts*, so
that "step 5 starts" means that five steps are done. When the last step ended is not told.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.logs.entries import Entry, entries
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime, Zero, duration
from ettwatch_sources.told import Told

_PHASES: Final = {
    "tpu_init": "trainer_init.device_init",
    "training_prep": "trainer_init.pre_train",
    "data_loading": "trainer_init.get_first_batch_data",
}
_IN_LOOP: Final = {"data_loading": "wasted_training.data_stall"}
_SAVE_START: Final = ("checkpoint_manager_blocking_start_time", "checkpoint_start_time")
_SAVE_LENGTH: Final = ("checkpoint_manager_blocking_duration_secs", "checkpointer_blocking_duration_secs")
_RESTORE_START: Final = ("checkpoint_manager_start_time", "checkpointer_start_time")
_RESTORE_LENGTH: Final = ("checkpoint_manager_duration_secs", "checkpointer_duration_secs")
_KNOWN: Final = (
    "step_start_time",
    "job_start_time",
    "job_end_time",
    "custom_badput_event_start_time",
    "custom_badput_event_end_time",
)


def read(feed: Feed) -> Iterator[Told]:
    """Read entries of one job or of several."""
    pens: dict[str, Pen] = {}
    starts: dict[str, int] = {}
    for entry in entries(feed, "entry of ml-goodput-measurement", _when):
        payload = entry.payload
        name = payload.get("job_name")
        job = feed.options.job or (str(name) if name else feed.default_job)
        pen = pens.setdefault(job, Pen(feed, job))
        try:
            yield from _event(pen, payload, starts)
        except Zero as error:
            feed.flag("zero_time", job)
            feed.refuse(str(error))
        except NoTime as error:
            feed.refuse(str(error))
    for pen in pens.values():
        if not pen.ended:
            feed.flag("no_end", pen.job)


def _when(entry: Entry) -> float | None:
    times = (value for key, value in entry.payload.items() if key.endswith("_time") and isinstance(value, int | float))
    return next((float(value) for value in times if 0 < value < 1e12), None)


def _event(pen: Pen, payload: Mapping[str, Any], starts: dict[str, int]) -> Iterator[Told]:
    feed = pen.feed

    def time(name: str) -> int:
        return feed.in_order(feed.time_of_number(payload[name], "s"), pen.job)

    if "job_start_time" in payload:
        ts = time("job_start_time")
        if starts.setdefault(pen.job, 0):
            pen.next_attempt()
            feed.flag("counted_attempts", pen.job)
        starts[pen.job] += 1
        # The first line of the program, not of the scheduler: the attempt begins here for want of better.
        yield from pen.alive(ts)
        return
    if "job_end_time" in payload:
        yield from pen.over(ts := time("job_end_time"), "succeeded")
        yield from pen.job_over(ts, "succeeded")
        return
    if "step_start_time" in payload:
        step = payload.get("step_count")
        if not isinstance(step, int | float) or isinstance(step, bool) or step < 0:
            raise NoTime(f"a step without its number: {step!r}")
        ts, done = time("step_start_time"), int(step)
        if pen.trains:
            yield from pen.progress(ts, pen.position(done), step=done)
        else:
            yield from pen.training(ts, pen.position(done), step=done)
        return
    for stage, phase in _PHASES.items():
        if f"{stage}_start_time" in payload:
            name = _IN_LOOP.get(stage, phase) if pen.trains else phase
            yield from pen.begin(name, time(f"{stage}_start_time"), stage)
            return
        if f"{stage}_end_time" in payload:
            yield from pen.finish(stage, time(f"{stage}_end_time"))
            return
    if "custom_badput_event_start_time" in payload or "custom_badput_event_end_time" in payload:
        yield from _custom(pen, payload, time)
    elif payload.get("event_type") in {"save", "restore"}:
        yield from _checkpoint(pen, payload)
    elif not any(key in payload for key in _KNOWN):
        feed.unknown(" ".join(sorted(str(key) for key in payload))[:100], pen.job)


def _custom(pen: Pen, payload: Mapping[str, Any], time: Any) -> Iterator[Told]:
    told = str(payload.get("custom_badput_event_type") or "unknown")
    word = re.sub(r"[^a-z0-9]+", "_", told.lower()).strip("_") or "unknown"
    component = "wasted_training" if pen.trains else "trainer_init"
    if "custom_badput_event_start_time" in payload:
        ts = time("custom_badput_event_start_time")
        yield from pen.begin(f"{component}.{word}", ts, f"custom/{word}", attrs={"custom_badput_event_type": told})
    else:
        yield from pen.finish(f"custom/{word}", time("custom_badput_event_end_time"))


def _checkpoint(pen: Pen, payload: Mapping[str, Any]) -> Iterator[Told]:
    saves = payload["event_type"] == "save"
    starts, lengths = (_SAVE_START, _SAVE_LENGTH) if saves else (_RESTORE_START, _RESTORE_LENGTH)
    start = next((payload[name] for name in starts if payload.get(name)), None)
    length = next((payload[name] for name in lengths if payload.get(name) is not None), None)
    if start is None or length is None:
        pen.feed.flag("save_length", pen.job)
        raise NoTime("a checkpoint entry without its start or its length")
    ts = pen.feed.time_of_number(start, "s")
    phase = "wasted_training.checkpoint_save" if saves else "trainer_init.checkpoint_load"
    yield from pen.span(phase, ts, ts + duration(length, "s"))


def _is_it(head: str, name: str) -> bool:
    return '"job_name"' in head and any(
        f'"{key}"' in head for key in ("job_start_time", "step_start_time", "tpu_init_start_time")
    )


KIND: Final = Kind(
    name="mlgoodput",
    title="entries of ml-goodput-measurement",
    read=read,
    is_it=_is_it,
    unknown=("no_submit", "no_eligible", "no_start", "no_gpus"),
)
