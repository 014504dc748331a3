"""Writes the events of a job that is laid out anew."""

from ettwatch_schemas import (
    AttemptEnded,
    AttemptStarted,
    CheckpointDurable,
    Event,
    Heartbeat,
    JobEnded,
    JobSubmitted,
    PhaseEnded,
    PhaseStarted,
    Progress,
    TrainingEnded,
    TrainingStarted,
)


class Pen:
    """Collects the events of a job.

    Attributes:
        events: What was written.
    """

    def __init__(self, job: str) -> None:
        self.events: list[Event] = []
        self._job = job

    @property
    def _id(self) -> str:
        return str(len(self.events))

    def submitted(
        self, ts: int, team: str | None, model: str | None, cluster: str | None, gpus: int, labels: dict[str, str]
    ) -> None:
        """The job is submitted."""
        self.events.append(
            JobSubmitted(
                id="submitted", job=self._job, ts=ts, team=team, model=model, cluster=cluster, gpus=gpus, labels=labels
            )
        )

    def phase(self, attempt: int, phase: str, start: int, end: int) -> None:
        """A phase with an end; one that takes no time is left out."""
        if end <= start:
            return
        span = str(len(self.events))
        self.events.append(
            PhaseStarted(id=f"{span}s", job=self._job, ts=start, attempt=attempt, span=span, phase=phase)
        )
        self.events.append(PhaseEnded(id=f"{span}e", job=self._job, ts=end, attempt=attempt, span=span))

    def started(self, attempt: int, ts: int, gpus: int) -> None:
        """An attempt has its hardware."""
        self.events.append(
            AttemptStarted(id=self._id, job=self._job, ts=ts, attempt=attempt, gpus=gpus, source="scheduler")
        )

    def training(self, attempt: int, ts: int, position: int, every: float | None) -> None:
        """The loop begins."""
        self.events.append(
            TrainingStarted(
                id=self._id, job=self._job, ts=ts, attempt=attempt, position=max(0, position), report_every_s=every
            )
        )

    def progress(self, attempt: int, ts: int, position: int, waited: int) -> None:
        """How far the loop is."""
        self.events.append(
            Progress(
                id=self._id,
                job=self._job,
                ts=ts,
                attempt=attempt,
                position=max(0, position),
                data_wait_us=max(0, waited),
            )
        )

    def durable(self, attempt: int, ts: int, position: int) -> None:
        """A checkpoint is safe."""
        self.events.append(
            CheckpointDurable(id=self._id, job=self._job, ts=ts, attempt=attempt, position=max(0, position))
        )

    def trained(self, attempt: int, ts: int, position: int, waited: int) -> None:
        """The loop ends."""
        self.events.append(
            TrainingEnded(
                id=self._id,
                job=self._job,
                ts=ts,
                attempt=attempt,
                position=max(0, position),
                data_wait_us=max(0, waited),
            )
        )

    def ended(self, attempt: int, ts: int, outcome: str, cause: str | None) -> None:
        """An attempt is over."""
        self.events.append(
            AttemptEnded.model_validate(
                {
                    "id": self._id,
                    "job": self._job,
                    "ts": ts,
                    "attempt": attempt,
                    "outcome": outcome,
                    "cause": cause or "unknown",
                    "source": "scheduler",
                }
            )
        )

    def alive(self, attempt: int, ts: int) -> None:
        """An attempt is alive."""
        self.events.append(Heartbeat(id=self._id, job=self._job, ts=ts, attempt=attempt))

    def over(self, ts: int, outcome: str) -> None:
        """The job is over."""
        self.events.append(JobEnded.model_validate({"id": self._id, "job": self._job, "ts": ts, "outcome": outcome}))
