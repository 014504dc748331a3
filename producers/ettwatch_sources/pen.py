"""Tells the life of one job as a log tells it: attempts counted, spans named by where they begin."""

from collections.abc import Iterator
from typing import Any

from ettwatch_schemas import (
    AttemptEnded,
    AttemptStarted,
    CheckpointDurable,
    Heartbeat,
    JobEnded,
    JobSubmitted,
    PhaseEnded,
    PhaseStarted,
    Progress,
    Source,
    TrainingEnded,
    TrainingStarted,
)
from ettwatch_sources.feed import Feed
from ettwatch_sources.told import Told

MESSAGE = 4000
"""Characters of an error message that are kept."""


class Pen:
    """Writes events of one job. Times are microseconds since the epoch.

    Args:
        feed: The file that is read.
        job: The job.
        source: Who speaks.
        attempt: Number of the first attempt; else that of the options.
    """

    def __init__(self, feed: Feed, job: str, source: Source = "trainer", attempt: int | None = None) -> None:
        self.feed = feed
        self.job = job
        self.source = source
        self.attempt = feed.options.attempt if attempt is None else attempt
        self.rank = 0
        self.host: str | None = None
        self.trains = False
        """Whether the loop of this attempt has begun."""
        self.ended = False
        """Whether this attempt was told to be over."""
        self._open: dict[str, tuple[str, int]] = {}

    def _tell(self, kind: Any, ts: int, **fields: Any) -> Iterator[Told]:
        own = {"rank": self.rank or None, "host": self.host} | fields
        if self.source != "trainer":
            own["source"] = self.source
        return self.feed.tell(kind, job=self.job, ts=ts, **own)

    def next_attempt(self) -> None:
        """Begin to count the next attempt."""
        self.attempt += 1
        self.trains = self.ended = False
        self._open.clear()

    def submitted(self, ts: int, **fields: Any) -> Iterator[Told]:
        """Tell that the job was submitted."""
        options = self.feed.options
        own = {"team": options.team, "model": options.model, "cluster": options.cluster, "gpus": options.gpus}
        yield from self._tell(JobSubmitted, ts, **(own | {k: v for k, v in fields.items() if v is not None}))

    def started(self, ts: int, **fields: Any) -> Iterator[Told]:
        """Tell that hardware was allocated."""
        fields.setdefault("gpus", self.feed.options.gpus)
        yield from self._tell(AttemptStarted, ts, attempt=self.attempt, **fields)

    def begin(self, phase: str, ts: int, key: str | None = None, **fields: Any) -> Iterator[Told]:
        """Open a span; `key` is by what `finish` finds it again (the phase)."""
        span = f"{phase}@{ts}"
        self._open[key or phase] = (span, ts)
        yield from self._tell(PhaseStarted, ts, attempt=self.attempt, span=span, phase=phase, **fields)

    def finish(self, key: str, ts: int, **fields: Any) -> Iterator[Told]:
        """Close the span that was opened under `key`; one that was not opened is told as nothing."""
        span, _ = self._open.pop(key, (None, 0))
        if span is not None:
            yield from self._tell(PhaseEnded, ts, attempt=self.attempt, span=span, **fields)

    def is_open(self, key: str) -> bool:
        """Tell whether a span is open under `key`."""
        return key in self._open

    def span(self, phase: str, start: int, end: int, **fields: Any) -> Iterator[Told]:
        """Tell a span whose both ends are known."""
        name = f"{phase}@{start}"
        yield from self._tell(PhaseStarted, start, attempt=self.attempt, span=name, phase=phase, **fields)
        yield from self._tell(PhaseEnded, end, attempt=self.attempt, span=name)

    def position(self, step: int) -> int:
        """Return the position of a step: in samples where the batch is known, else the step itself."""
        if self.feed.options.batch is not None:
            return step * self.feed.options.batch
        self.feed.flag("position_is_step", self.job)
        return step

    def training(self, ts: int, position: int, **fields: Any) -> Iterator[Told]:
        """Tell that the loop begins."""
        self.trains = True
        yield from self._tell(TrainingStarted, ts, attempt=self.attempt, position=position, **fields)

    def progress(self, ts: int, position: int, **fields: Any) -> Iterator[Told]:
        """Tell how far the loop is."""
        if not self.trains:
            self.trains = True
            self.feed.flag("no_loop_start", self.job)
        yield from self._tell(Progress, ts, attempt=self.attempt, position=position, **fields)

    def trained(self, ts: int, position: int, **fields: Any) -> Iterator[Told]:
        """Tell that the loop ended."""
        yield from self._tell(TrainingEnded, ts, attempt=self.attempt, position=position, **fields)

    def durable(self, ts: int, position: int, **fields: Any) -> Iterator[Told]:
        """Tell that a checkpoint is safe."""
        yield from self._tell(CheckpointDurable, ts, attempt=self.attempt, position=position, **fields)

    def over(self, ts: int, outcome: str, **fields: Any) -> Iterator[Told]:
        """Tell that the attempt ended."""
        self.ended = True
        message = fields.get("message")
        if isinstance(message, str):
            fields["message"] = message[:MESSAGE]
        yield from self._tell(AttemptEnded, ts, attempt=self.attempt, outcome=outcome, **fields)

    def job_over(self, ts: int, outcome: str) -> Iterator[Told]:
        """Tell that no attempt follows."""
        yield from self._tell(JobEnded, ts, outcome=outcome)

    def alive(self, ts: int) -> Iterator[Told]:
        """Tell that the attempt lives."""
        yield from self._tell(Heartbeat, ts, attempt=self.attempt)
