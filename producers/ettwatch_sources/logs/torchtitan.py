"""Console logs of torchtitan: `[rank0]:[titan] 2025-11-25 19:44:53,858 - root - INFO - step: 10  loss: …`.

Format: torchtitan/tools/logging.py, train.py, components/checkpoint.py. Times are local times without a zone. A failure
is told by torchrun's agent, in lines without a year; that of the line before them is taken.
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

_LINE: Final = re.compile(
    r"(?:\[(?:rank|default|trainer)?(?P<rank>\d{1,9})\]:?\s*)?(?:\[titan\]\s*)?"
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3,6}) - (?P<logger>[\w.]+) - (?P<level>[A-Z]+) - (?P<text>.*)"
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3,6}(?= - )")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_STEP: Final = re.compile(r"step:\s*(\d{1,15})\s+(?:loss|grad)")
_STARTS: Final = re.compile(r"Training starts at step (\d{1,15})\b")
_BATCH: Final = re.compile(r"global batch size (\d{1,12})\b")
_AGENT: Final = re.compile(r"[EW](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+).*?failed \(exitcode: (-?\d{1,9})\)")
_ERROR: Final = re.compile(r"^(?:\[rank\d+\]:\s*)?((?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt)\b.*)")
_LOADS: Final = ("Loading the checkpoint",)
_LOADED: Final = ("Finished loading the checkpoint",)
_SAVES: Final = ("Saving the checkpoint", "Saving a full checkpoint", "Saving a model only checkpoint")
_SAVED: Final = ("Finished saving the checkpoint",)


class _Log:
    """What is known of the log so far."""

    def __init__(self, feed: Feed) -> None:
        place = place_in(feed.name)
        self.pen = Pen(feed, feed.default_job, attempt=feed.options.attempt + place.attempt)
        self.rank = place.rank
        self.batch = feed.options.batch
        self.steps: dict[int, int] = {}
        self.last: int | None = None
        self.date = ""
        self.error = ""
        self.completed = False
        self.begun: set[int] = set()


def read(feed: Feed) -> Iterator[Told]:
    """Read one log: of one rank or of several, of one attempt or of several one after the other."""
    log = _Log(feed)
    ranks: set[int] = set()
    for line in feed.lines_in_time(_when):
        text = _COLOUR.sub("", line.text)
        found = _LINE.search(text)
        if not found:
            yield from _untimed(log, text)
            continue
        try:
            ts = feed.in_order(feed.time_of_text(found["time"]))
        except NoTime as error:
            feed.refuse(str(error))
            continue
        rank = int(found["rank"]) if found["rank"] else log.rank
        ranks.add(rank)
        log.last, log.date, log.pen.rank = ts, found["time"], rank
        yield from _tell(log, rank, ts, found["text"].strip())
    if len(ranks) > 1:
        feed.flag("several_ranks")
    if log.completed and log.last is not None:
        # The last words of a run that completed are said on its way out.
        log.pen.rank = min(ranks)
        yield from log.pen.over(log.last, "succeeded")
        yield from log.pen.job_over(log.last, "succeeded")
    elif not log.pen.ended:
        feed.flag("no_end", log.pen.job)


def _when(text: str) -> str | None:
    found = _TIME.search(text)
    return found[0].replace(",", ".") if found else None


def _tell(log: _Log, rank: int, ts: int, text: str) -> Iterator[Told]:
    pen = log.pen
    batch = _BATCH.search(text)
    if batch and log.batch is None:
        log.batch = int(batch[1])
    if text.startswith("Starting job"):
        if rank in log.begun:
            pen.next_attempt()
            pen.feed.flag("counted_attempts", pen.job)
            log.begun.clear()
            log.error, log.completed = "", False
        log.begun.add(rank)
        yield from pen.alive(ts)
    elif starts := _STARTS.search(text):
        done = max(int(starts[1]) - 1, 0)
        log.steps[rank] = done
        yield from pen.training(ts, _position(log, done), step=done)
    elif step := _STEP.match(text):
        log.steps[rank] = int(step[1])
        yield from pen.progress(ts, _position(log, int(step[1])), step=int(step[1]))
    elif text.startswith(_LOADS):
        yield from pen.begin("trainer_init.checkpoint_load", ts, f"load{rank}")
    elif text.startswith(_LOADED):
        yield from pen.finish(f"load{rank}", ts)
    elif text.startswith(_SAVES):
        yield from pen.begin("wasted_training.checkpoint_save", ts, f"save{rank}")
    elif text.startswith(_SAVED):
        yield from pen.finish(f"save{rank}", ts)
        if "async" not in text and rank in log.steps:
            yield from pen.durable(ts, _position(log, log.steps[rank]), step=log.steps[rank])
    elif text.startswith("Training completed"):
        log.completed = True
        if rank in log.steps:
            yield from pen.trained(ts, _position(log, log.steps[rank]), step=log.steps[rank])
    elif not pen.ended:
        yield from pen.alive(ts)


def _position(log: _Log, step: int) -> int:
    if log.batch is None:
        log.pen.feed.flag("position_is_step", log.pen.job)
        return step
    return step * log.batch


def _untimed(log: _Log, text: str) -> Iterator[Told]:
    """Errors have no time of their own; the agent's word that a process failed has one without a year."""
    if error := _ERROR.match(text):
        log.error = log.error or error[1][:500]
    agent = _AGENT.search(text)
    if agent is None or not log.date:
        return
    feed = log.pen.feed
    feed.flag("year_assumed", log.pen.job)
    try:
        ts = feed.time_of_text(f"{log.date[:4]}-{agent[1]}-{agent[2]} {agent[3]}")
    except NoTime as wrong:
        feed.refuse(str(wrong))
        return
    code = int(agent[4])
    fields = {"signal": -code} if code < 0 else {"exit_code": code}
    cause = cause_of(log.error)
    if cause == "unknown":
        feed.flag("no_cause", log.pen.job)
    yield from log.pen.over(ts, "failed", cause=cause, message=log.error or text.strip(), **fields)


KIND: Final = Kind(
    name="torchtitan",
    title="console logs of torchtitan",
    read=read,
    is_it=lambda head, name: "[titan]" in head or bool(re.search(r"- root - INFO - (step:|Starting job)", head)),
    unknown=("no_submit", "no_eligible", "no_start", "no_gpus", "no_data_wait"),
    restarts=True,
)
