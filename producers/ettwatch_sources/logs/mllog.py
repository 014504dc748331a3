"""MLPerf training logs: `:::MLLOG` and a JSON object, anywhere in a line.

Format: https://github.com/mlcommons/logging (mlperf_logging/mllog) and the training rules of MLPerf. Times are
milliseconds. `init_start` to `init_stop` is start-up; `run_start` begins the loop; blocks, epochs, losses and
evaluations say how far it is; `run_stop` ends it, `success` or `aborted` (it did not converge in time).
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime
from ettwatch_sources.told import Told

_MARK: Final = ":::MLLOG"
_RANK: Final = re.compile(r"(?:^|\D)(\d{1,6})\]?\s*:?\s*$")
_TIME: Final = re.compile(r'"time_ms"\s*:\s*(\d{1,18})')
_INIT: Final = "trainer_init"
_EVAL: Final = "wasted_training.evaluation"
_LATER: Final = frozenset({"run_stop", "eval_start", "eval_stop", "block_stop", "epoch_stop", "eval_accuracy"})
_EPOCHS: Final = 10_000
"""No run has more epochs: a larger whole number of them is one of samples, as BERT's and GPT-3's logs have it."""


class _Run:
    """What is known of the run that is told."""

    def __init__(self, feed: Feed, number: int) -> None:
        name = feed.default_job if number == 1 else f"{feed.default_job}#{number}"
        self.pen = Pen(feed, name)
        self.number = number
        self.stopped = False
        self.unit = ""
        self.batch: int | None = feed.options.batch
        self.last = 0


def read(feed: Feed) -> Iterator[Told]:
    """Read one log: one run, or several one after the other."""
    run = _Run(feed, 1)
    ranks: set[int] = set()
    for line in feed.lines_in_time(_when):
        at = line.text.find(_MARK)
        if at < 0:
            continue
        try:
            entry = json.loads(line.text[at + len(_MARK) :])
            key, ts = str(entry["key"]), feed.in_order(feed.time_of_number(entry["time_ms"], "ms"))
            metadata = entry.get("metadata") or {}
            if not isinstance(metadata, dict):
                metadata = {}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if line.cut:
                feed.flag("truncated")
            if isinstance(error, NoTime) and "is 0" in str(error):
                feed.flag("zero_time")
            feed.refuse(f"no entry of MLLOG: {_why(error)}")
            continue
        found = _RANK.search(line.text[:at])
        ranks.add(rank := int(found[1]) if found else 0)
        if key in {"init_start", "run_start"} and run.stopped and rank == 0:
            run = _Run(feed, run.number + 1)
        run.pen.rank = rank
        yield from _event(run, key, ts, entry.get("value"), metadata)
    if len(ranks) > 1:
        feed.flag("several_ranks")
    if not run.stopped:
        feed.flag("no_end", run.pen.job)


def _when(text: str) -> float | None:
    found = _TIME.search(text)
    return float(found[1]) if found else None


def _event(run: _Run, key: str, ts: int, value: object, metadata: dict[str, Any]) -> Iterator[Told]:
    pen = run.pen
    position = _position(run, key, value, metadata)
    if not pen.trains and key not in {"init_start", "run_start"}:
        yield from pen.alive(ts)
    if key == "init_start":
        if pen.trains and not run.stopped:
            # It starts anew without having stopped: it died and came back in the same log.
            pen.next_attempt()
            run.last = 0
            pen.feed.flag("counted_attempts", pen.job)
        yield from pen.begin(_INIT, ts, f"init{pen.rank}")
    elif key == "init_stop":
        yield from pen.finish(f"init{pen.rank}", ts)
    elif key == "run_start":
        yield from pen.training(ts, position if position is not None else 0)
    elif key == "eval_start":
        if position is not None:
            yield from pen.progress(ts, position)
        yield from pen.begin(_EVAL, ts, f"eval{pen.rank}")
    elif key == "eval_stop":
        yield from pen.finish(f"eval{pen.rank}", ts)
    elif key == "run_stop":
        run.stopped = True
        status = metadata.get("status", value)
        outcome = "succeeded" if status == "success" else "failed" if status in {"aborted", "abort"} else "cancelled"
        if outcome == "cancelled":
            pen.feed.unknown(f"run_stop status {status!r}", pen.job)
            pen.feed.flag("no_outcome", pen.job)
        yield from pen.trained(ts, position if position is not None else run.last)
        yield from pen.over(ts, outcome, message=None if outcome == "succeeded" else f"run_stop: {status}")
        yield from pen.job_over(ts, outcome)
    elif position is not None:
        yield from pen.progress(ts, position)
    elif key == "submission_benchmark" and pen.feed.options.model is None and isinstance(value, str):
        yield from pen.submitted(ts, model=value)
    elif key == "global_batch_size" and run.batch is None and _whole(value) is not None:
        run.batch = _whole(value)


def _position(run: _Run, key: str, value: object, metadata: dict[str, Any]) -> int | None:
    """How far the run is by this entry, in the unit in which it told it first."""
    samples = metadata.get("samples_count", value if key == "samples_count" else None)
    choices = (("samples", samples), ("steps", metadata.get("step_num")), ("epochs", metadata.get("epoch_num")))
    if key not in _LATER and samples is None:
        return None
    for unit, told in choices:
        if not isinstance(told, int | float) or isinstance(told, bool) or told < 0 or (run.unit and unit != run.unit):
            continue
        run.unit = unit
        if unit == "epochs" and not (isinstance(told, int) and told > _EPOCHS):
            run.pen.feed.flag("position_is_epoch", run.pen.job)
            number = round(told * 1_000_000)
        elif unit == "steps" and run.batch is not None:
            number = round(told) * run.batch
        else:
            if unit == "steps":
                run.pen.feed.flag("position_is_step", run.pen.job)
            number = round(told)
        if number < run.last:
            return None  # entries of one moment may name the block's begin
        run.last = number
        return number
    return None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _why(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


KIND: Final = Kind(
    name="mllog",
    title="MLPerf training logs (:::MLLOG)",
    read=read,
    is_it=lambda head, name: _MARK in head,
    unknown=("no_submit", "no_eligible", "no_start", "no_gpus", "no_data_wait", "save_length"),
    restarts=True,
)
