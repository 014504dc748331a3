"""One attempt of a random job: start-up, training loop, end."""

from dataclasses import dataclass
from typing import Final

from ettwatch_schemas import (
    AttemptEnded,
    AttemptStarted,
    CheckpointDurable,
    Heartbeat,
    Progress,
    TrainingEnded,
    TrainingStarted,
)
from ettwatch_sim.pen import US, Pen

_STARTUP: Final = (
    ("hardware_setup.image_pull", 60),
    ("hardware_setup.binary_start", 10),
    ("trainer_init.device_init", 20),
    ("trainer_init.process_group_init", 40),
    ("trainer_init.train_module_creation", 60),
    ("trainer_init.checkpoint_load", 90),
    ("trainer_init.get_first_batch_data", 60),
)
_COMPILING: Final = ("pt2_compilation.dynamo", "pt2_compilation.aot_autograd", "pt2_compilation.inductor")
_IN_LOOP: Final = (
    "wasted_training.evaluation",
    "wasted_training.data_stall",
    "pt2_compilation.recompile",
    "trainer_init.checkpoint_load",
)
_AFTER: Final = ("shutdown.final_checkpoint", "shutdown.model_publish", "shutdown.teardown")
_CAUSES: Final = ("hardware", "network", "storage", "gpu_memory", "user_code", "config", "timeout", "unknown")
_SOURCES: Final = ("trainer", "launcher", "scheduler")


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended.

    Attributes:
        ts: When, in microseconds.
        position: The position that its loop reached.
        saved: The position of its last durable checkpoint, or that from which it began.
        outcome: What it came to.
    """

    ts: int
    position: int
    saved: int
    outcome: str


def attempt(pen: Pen, number: int, start: int, position: int, *, last: bool) -> Ended:
    """Write one attempt that begins at `start` (microseconds) and `position` (samples)."""
    dice = pen.dice
    ranks = dice.randint(1, pen.shape.ranks)
    if pen.chance(0.95):
        trigger = "initial" if number == 0 else dice.choice(("failure", "preemption", "resize", "manual"))
        gpus = dice.choice((None, 1, 8, 8, 64))
        pen.write(
            AttemptStarted, start, attempt=number, gpus=gpus, world_size=ranks, trigger=trigger, source="launcher"
        )
    now = _start_up(pen, number, start, ranks)
    saved = position
    dies = not last or pen.chance(0.3)
    if pen.chance(0.08):
        outcome = "failed"  # before its loop
    else:
        now, position, saved = _loop(pen, number, now, position, ranks, dies=dies)
        outcome = dice.choice(("failed", "failed", "preempted")) if dies else "succeeded"
        if not dies:
            for phase in _AFTER[: dice.randint(0, len(_AFTER))]:
                end = now + pen.us(1, 120)
                pen.spans(number, phase, now, end, 1)
                now = end
        elif pen.chance(0.05):
            outcome = "cancelled"
    now += pen.us(0, 20)
    if pen.chance(0.9):
        _tell_end(pen, number, now, outcome)
    if pen.oddly(0.3):  # a process that does not know that it is over
        later = now + pen.us(1, 200)
        pen.write(Heartbeat, later, attempt=number)
        pen.write(Progress, later + US, attempt=number, position=position + 500, step=position // 10 + 50)
    return Ended(now, position, saved, outcome)


def _start_up(pen: Pen, number: int, now: int, ranks: int) -> int:
    for phase, longest in _STARTUP:
        if pen.chance(0.3):
            now += pen.us(0, 15)
            continue
        end = now + pen.us(0.2, longest)
        pen.spans(number, phase, now, end, ranks if phase.startswith("trainer_init") else 1)
        # The next one may begin while this one still runs.
        now = end if pen.chance(0.8) else now + pen.us(0, (end - now) / US)
    if pen.chance(0.6):
        end = now + pen.us(5, 180)
        whole = pen.span(number, "pt2_compilation", now, end)
        part = now
        for phase in _COMPILING:
            until = part + pen.us(0, (end - part) / US)
            pen.span(number, phase, part, until, parent=whole)
            part = until
        now = end if pen.chance(0.7) else now + pen.us(0, 5)  # compiled in the first step
    return now


def _loop(pen: Pen, number: int, start: int, position: int, ranks: int, *, dies: bool) -> tuple[int, int, int]:
    """Write a training loop; return its end, the position there, and that of the last durable checkpoint."""
    dice, shape = pen.dice, pen.shape
    every = shape.report_every_s
    speed = dice.choice((40, 120, 900))
    speakers = range(ranks) if pen.chance(0.2) else range(1)
    step, saved, wait = position // 10, position, 0
    for rank in range(ranks) if pen.chance(0.3) else range(1):
        pen.write(
            TrainingStarted,
            start + (pen.us(0, 2) if rank else 0),
            attempt=number,
            rank=rank,
            position=position,
            step=step,
            report_every_s=every * 2 if pen.chance(0.8) else None,
        )
    now, end = start, start + pen.us(0, shape.loop_s)
    while now < end:
        gap = pen.us(every * 0.9, every * 1.1)
        if pen.chance(0.004):
            gap += pen.us(300, 900)  # it hangs
        elif pen.chance(0.04):
            phase = dice.choice(_IN_LOOP)
            took = pen.us(1, every * 2)
            pen.span(number, phase, now, None if pen.chance(0.1) else now + took)
            gap += took
        elif pen.chance(0.06):
            saved = _save(pen, number, now, position, step, saved)
        now += gap
        wait += int(gap * dice.random() * 0.3) if pen.chance(0.5) else 0
        luck = dice.random()
        if luck < 0.02:
            position = max(0, position - dice.randint(1, 20) * speed)  # it rolls back
            step = max(0, step - 20)
        elif luck > 0.03:
            position, step = position + speed, step + 10
        if pen.oddly(0.01):
            position = 0  # the counter is reset, the steps go on
        for rank in speakers:
            pen.write(
                Progress,
                now + (pen.us(0, 1) if rank else 0),
                attempt=number,
                rank=rank,
                position=position,
                step=step,
                data_wait_us=wait,
            )
    if not dies:
        pen.write(TrainingEnded, now, attempt=number, position=position, step=step, data_wait_us=wait)
    elif pen.chance(0.3):
        pen.write(Heartbeat, now + pen.us(0, 30), attempt=number, rank=dice.randrange(ranks))
    return now, position, saved


def _save(pen: Pen, number: int, now: int, position: int, step: int, saved: int) -> int:
    """Write a checkpoint, blocking, then in the background; return the position that is safe after it."""
    blocked = now + pen.us(0.1, 5)
    pen.span(number, "wasted_training.checkpoint_save", now, blocked)
    if pen.chance(0.2):  # its upload is never told to be complete
        pen.span(number, "wasted_training.checkpoint_save", blocked, None, background=True)
        return saved
    durable = blocked + pen.us(1, 60)
    pen.span(number, "wasted_training.checkpoint_save", blocked, durable, background=True)
    size = pen.dice.randint(1, 1_000) * 1_000_000
    pen.write(CheckpointDurable, durable, attempt=number, step=step, position=position, bytes=size, started_ts=now)
    return position


def _tell_end(pen: Pen, number: int, ts: int, outcome: str) -> None:
    bad = outcome in ("failed", "preempted")
    for source in pen.dice.sample(_SOURCES, pen.dice.choice((1, 1, 2, 3))):
        pen.write(
            AttemptEnded,
            ts + pen.us(0, 5),
            attempt=number,
            source=source,
            outcome=outcome,
            cause=pen.dice.choice(_CAUSES) if bad else None,
            exit_code=pen.dice.choice((1, 137)) if outcome == "failed" else None,
            signal=9 if outcome == "preempted" else None,
            message="out of memory" if bad and pen.chance(0.2) else None,
        )
