"""A job as it was observed, in parts that can be laid out anew: start-ups, loops, ends, waits.

Times are microseconds. Those of an attempt count from its start, those of a loop in free running: time from the first
batch on in which no phase is open. Positions of a loop count from where it resumed.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Piece(NamedTuple):
    """A stretch of an end or a wait, charged to one stage; `told` where a phase says so."""

    stage: str
    length: int
    told: bool


class Node(NamedTuple):
    """A phase of a start-up without parts. `behind`: by how much its last rank (`rank`) was later than the others."""

    stage: str
    start: int
    end: int
    open: bool
    behind: int
    rank: int


@dataclass(frozen=True, slots=True)
class Startup:
    """A start-up.

    Attributes:
        nodes: Its phases, by start.
        glue: Time in which none of them is open: stage, start, end.
        loop_start: When the loop began; None if it never did.
        end: The first batch, or the end of an attempt that never trained.
    """

    nodes: tuple[Node, ...]
    glue: tuple[tuple[str, int, int], ...]
    loop_start: int | None
    end: int


class Pause(NamedTuple):
    """A phase in the loop: after how much free running it began, and how long it took."""

    at: int
    stage: str
    length: int


class Report(NamedTuple):
    """A report of the loop. `pause` is the number of the pause that it falls into, `into` how far (-1: into none)."""

    at: int
    position: int
    waited: int
    pause: int = -1
    into: int = -1


class Durable(NamedTuple):
    """A checkpoint that became safe.

    Attributes:
        pause: The number of the pause in which it was saved; -1 where there is none.
        at: Free running done when saving began.
        position: What it holds.
        delay: From the end of the pause (without one: from `at`) until it was safe.
    """

    pause: int
    at: int
    position: int
    delay: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop up to its last advance.

    Attributes:
        start: Where it resumed (samples).
        every: The longest silence that was declared (s).
        reports: By time; the last is the last advance.
        pauses: By time.
        durables: By time.
        free: Free running until the last advance.
        reached: The highest position.
        still: From the last advance to when it really stood still: negative where it stood before it told so; where
            nobody tells, half the time between two reports.
        cut: How long after the last advance a save began that never came to its end; None where there is none.
    """

    start: int
    every: float | None
    reports: tuple[Report, ...]
    pauses: tuple[Pause, ...]
    durables: tuple[Durable, ...]
    free: int
    reached: int
    still: int = 0
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt.

    Attributes:
        number: As told.
        gpus: GPUs that it held.
        start: Its start, since the epoch.
        wait: The wait before it.
        startup: Its start-up.
        loop: None if it never trained.
        tail: From the last advance to its end.
        tail_waits: Growth of the time waited for data in the tail: after how long, how much.
        ended_after: From the last advance to `training_ended`; None where that was not told.
        outcome, cause: How it ended; None while it is open.
        clean: The trainer itself told of its end.
        silent: Of one that never trained: how long (µs) its trainer was dead when it ended, by its silence; None where
            it never spoke regularly.
        alive: Whether it may have spoken to the end.
        hosts: The host of each rank that spoke.
        compiled: The keys of what it compiled or found compiled, and whether it was found.
    """

    number: int
    gpus: int
    start: int
    wait: tuple[Piece, ...]
    startup: Startup
    loop: Loop | None
    tail: tuple[Piece, ...]
    tail_waits: tuple[tuple[int, int], ...]
    ended_after: int | None
    outcome: str | None
    cause: str | None
    clean: bool
    silent: int | None
    alive: bool
    hosts: dict[int, str]
    compiled: dict[str, bool]

    @property
    def failed(self) -> bool:
        """Whether it counts as a failure."""
        return self.outcome in ("failed", "preempted")

    @property
    def aged(self) -> bool:
        """Whether it failed at an age: by something else than the code or configuration of its job."""
        return self.failed and self.cause not in ("user_code", "config")

    @property
    def length(self) -> int:
        """From its start to its last advance, or to its end if it never trained."""
        if self.loop is None:
            return self.startup.end
        return self.startup.end + self.loop.free + sum(pause.length for pause in self.loop.pauses)


@dataclass(frozen=True, slots=True)
class Life:
    """A job.

    Attributes:
        job, team, model, cluster, labels, gpus: As told.
        t0: Its begin, since the epoch.
        attempts: By number; at least one.
        rest: From the end of the last attempt to the end of the job.
        status: Of its summary.
        target: The highest position that it reached.
        lags: For each attempt, from which of the checkpoints before it it resumed: 0 is the newest; None: from another
            position.
        as_of: The clock, since the epoch.
    """

    job: str
    team: str | None
    model: str | None
    cluster: str | None
    labels: dict[str, str]
    gpus: int
    t0: int
    attempts: tuple[Attempt, ...]
    rest: tuple[Piece, ...]
    status: str
    target: int
    lags: tuple[int | None, ...]
    as_of: int

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.status in ("succeeded", "failed", "cancelled", "lost")
