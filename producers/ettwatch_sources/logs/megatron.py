"""Console logs of Megatron-LM: ` [2024-09-03 15:54:54] iteration       10/  500000 | consumed samples:  10240 | …`.

Format: megatron/training/training.py (print_datetime, training_log). Times are local, whole seconds, without a zone;
old versions write none in the iteration lines, which are then refused. Evaluations and saves come right after the
iteration line they belong to, and their lengths are told by the timers that follow; where they are not, they count as
training.
"""

import re
from collections.abc import Iterator
from typing import Final

from ettwatch_sources.causes import cause_of
from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.logs.ranks import place_in
from ettwatch_sources.pen import Pen
from ettwatch_sources.times import NoTime
from ettwatch_sources.told import Told

_STAMP: Final = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"
_ITERATION: Final = re.compile(r"\biteration\s+(\d{1,15})\s*/\s*(\d{1,15})\s*\|")
_SAMPLES: Final = re.compile(r"consumed samples:\s*(\d{1,18})\b")
_CURRENT: Final = re.compile(r"current time:\s*(\d{1,12}(?:\.\d{1,9})?)")
_POINT: Final = re.compile(rf"\[(?P<what>[^\]]+)\] datetime: (?P<time>{_STAMP})")
_ANY: Final = re.compile(rf"(?:^\s*(?:\S+:\s*)?\[|datetime: )({_STAMP})")
_WORLD: Final = re.compile(r"using world size: (\d{1,9})\b")
_INIT: Final = re.compile(r"time to initialize megatron \(seconds\): (\d{1,12}(?:\.\d{1,9})?)")
_TIMER: Final = re.compile(
    r"^\s*(save-checkpoint|evaluate)\s*\.*:\s*\((\d{1,12}(?:\.\d{1,9})?), (\d{1,12}(?:\.\d{1,9})?)\)"
)
_OLD_TIMER: Final = re.compile(r"\b(save-checkpoint|evaluate): (\d{1,12}(?:\.\d{1,9})?)")
_SAVED: Final = re.compile(r"successfully saved checkpoint (?:from|at) iteration\s+(\d{1,15})\b")
_ERROR: Final = re.compile(r"^(?:\[rank\d+\]:\s*)?((?:[\w.]+\.)?\w*(?:Error|Exception)\b.*)")
_TIMERS: Final = {
    "save-checkpoint": "wasted_training.checkpoint_save",
    "evaluate": "wasted_training.evaluation",
}
_STAGES: Final = {
    "after model, optimizer, and learning rate scheduler are built": "trainer_init.train_module_creation",
    "after dataloaders are built": "trainer_init.preproc_creation",
}


class _Log:
    """What is known of the log so far."""

    def __init__(self, feed: Feed) -> None:
        place = place_in(feed.name)
        self.pen = Pen(feed, feed.default_job, attempt=feed.options.attempt + place.attempt)
        self.pen.rank = place.rank
        self.point: int | None = None
        """When the last stage of start-up was over."""
        self.init_s = ""
        self.at: int | None = None
        """Up to when the time after the last iteration line is told."""
        self.step: int | None = None
        self.position = 0
        self.saved: int | None = None
        self.done = False
        self.world: int | None = None


def read(feed: Feed) -> Iterator[Told]:
    """Read one log, of one attempt or of several one after the other."""
    log = _Log(feed)
    for line in feed.lines_in_time(_when):
        text = line.text
        if "iteration" in text and (found := _ITERATION.search(text)):
            yield from _iteration(log, text, int(found[1]), line.cut)
        elif "datetime:" in text and (point := _POINT.search(text)):
            yield from _at(log, point["what"], point["time"])
        elif world := _WORLD.search(text):
            _begins(log)
            log.world = int(world[1])
        elif init := _INIT.search(text):
            log.init_s = init[1]
        elif timer := (_TIMER.search(text) or _OLD_TIMER.search(text)):
            yield from _timed(log, timer[1], timer[timer.lastindex or 2])
        elif saved := _SAVED.search(text):
            log.saved = int(saved[1])
        elif (error := _ERROR.match(text)) and not log.done:
            # It has no time: what went wrong is kept for people, when it ended is inferred.
            feed.flag("no_time", log.pen.job)
            feed.doubts.words.setdefault(f"{cause_of(error[1])}: {error[1][:150]}", line.number)
    if not log.done:
        feed.flag("no_end", log.pen.job)


def _when(text: str) -> str | None:
    """The time of a line; of one that says it only in seconds since the epoch none: it stays where it is."""
    found = _ANY.search(text)
    return found[1].replace(",", ".") if found else None


def _begins(log: _Log) -> None:
    """The first words of a program: where it has spoken before, it is the next attempt."""
    if log.point is not None or log.step is not None:
        log.pen.next_attempt()
        log.pen.feed.flag("counted_attempts", log.pen.job)
        log.point = log.at = log.step = log.saved = None
        log.done = False


def _at(log: _Log, what: str, time: str) -> Iterator[Told]:
    pen, feed = log.pen, log.pen.feed
    try:
        ts = feed.in_order(feed.time_of_text(time))
    except NoTime as error:
        feed.refuse(str(error))
        return
    if log.world is not None:
        # One GPU for each rank. There is no earlier line with a time.
        yield from pen.submitted(ts, gpus=feed.options.gpus or log.world)
        log.world = None
    if what == "after megatron is initialized":
        if log.step is not None:
            _begins(log)
        if log.init_s:
            took = round(float(log.init_s) * 1_000_000)
            yield from pen.span("trainer_init.process_group_init", ts - took, ts)
        else:
            yield from pen.alive(ts)
    elif what in _STAGES:
        start = log.point
        if start is not None:
            yield from pen.span(_STAGES[what], start, ts)
        else:
            yield from pen.alive(ts)
    elif what == "before the start of training step":
        # Where it resumes is told by its first iteration line only.
        log.at = ts
        yield from pen.alive(ts)
    elif what == "after training is done":
        log.done = True
        if log.step is not None:
            yield from pen.trained(ts, log.position, step=log.step)
        yield from pen.over(ts, "succeeded")
    elif what.startswith("exiting program"):
        log.done = True
        feed.flag("no_outcome", pen.job)
        yield from pen.over(ts, "cancelled", message=what)
    else:
        yield from pen.alive(ts)
    log.point = ts


def _iteration(log: _Log, text: str, step: int, cut: bool) -> Iterator[Told]:
    pen, feed = log.pen, log.pen.feed
    current = _CURRENT.search(text)
    stamp = re.search(_STAMP, text)
    samples = _SAMPLES.search(text)
    if samples is None and cut:
        feed.flag("truncated")
        feed.refuse("the iteration line is cut off")
        return
    try:
        if current:
            ts = feed.in_order(feed.time_of_number(current[1], "s"))
        elif stamp:
            ts = feed.in_order(feed.time_of_text(stamp[0]))
        else:
            feed.flag("no_time", pen.job)
            feed.refuse("an iteration line without a time; versions of Megatron before 2024 write none")
            return
    except NoTime as error:
        feed.refuse(str(error))
        return
    if samples is not None:
        position, per_step = int(samples[1]), int(samples[1]) / step if step else 0
    else:
        position, per_step = pen.position(step), feed.options.batch or 1
    if log.at is not None and not pen.trains:
        first = _resumed(log, text, ts, step, position, per_step)
        if first is not None:
            yield from pen.training(log.at, first)
    yield from pen.progress(ts, position, step=step)
    log.step, log.position, log.at = step, position, ts


def _resumed(log: _Log, text: str, ts: int, step: int, position: int, per_step: float) -> int | None:
    """Where the loop began: how many iterations this line covers is told by how long they took."""
    batch = re.search(r"global batch size:\s*(\d{1,15})\b", text)
    if step <= 1 or position == 0:
        return 0
    elapsed = re.search(r"elapsed time per iteration \((ms|s)\):\s*(\d{1,12}(?:\.\d{1,9})?)", text)
    if elapsed is None or log.at is None or float(elapsed[2]) <= 0:
        return None
    took_us = float(elapsed[2]) * (1_000 if elapsed[1] == "ms" else 1_000_000)
    covered = max(1, round((ts - log.at) / took_us))
    size = int(batch[1]) if batch else per_step
    return max(0, round(position - min(covered, step) * size))


def _timed(log: _Log, timer: str, longest_ms: str) -> Iterator[Told]:
    """An evaluation or a save that follows the iteration line: it began where what is told so far ends."""
    if log.at is None or log.step is None or log.done:
        return
    took = round(float(longest_ms) * 1_000)
    yield from log.pen.span(_TIMERS[timer], log.at, log.at + took)
    log.at += took
    if timer == "save-checkpoint" and log.saved == log.step:
        yield from log.pen.durable(log.at, log.position, step=log.step)


def _is_it(head: str, name: str) -> bool:
    return (
        "[after megatron is initialized]" in head
        or "[before the start of training step]" in head
        or bool(re.search(r"iteration\s+\d+\s*/\s*\d+ \|.*elapsed time per iteration", head))
    )


KIND: Final = Kind(
    name="megatron",
    title="console logs of Megatron-LM",
    read=read,
    is_it=_is_it,
    unknown=("no_submit", "no_eligible", "no_start", "no_gpus", "no_data_wait"),
    restarts=True,
)
