"""A job told in seconds: builds events by hand for tests that have a known right answer."""

import json
from typing import Any

from ettwatch_core import JobState, Rules, Snapshot, apply, snapshot
from ettwatch_schemas import Event, decode_event

START = 1_790_000_000_000_000
NO_LIMIT = Rules(lateness=None)


class Story:
    """Events of one job; times are seconds after :data:`START`."""

    def __init__(self, job: str = "job", gpus: int | None = 8) -> None:
        self.job = job
        self.gpus = gpus
        self.events: list[Event] = []

    def tell(self, at: float, kind: str, **fields: Any) -> "Story":
        body = {"v": 1, "id": f"{self.job}-{len(self.events)}", "kind": kind, "job": self.job}
        body |= {"ts": START + round(at * 1e6), **fields}
        self.events.append(decode_event(json.dumps(body).encode()))
        return self

    def submitted(self, at: float = 0, **fields: Any) -> "Story":
        return self.tell(at, "job_submitted", team="ads", model="m", cluster="c", gpus=self.gpus, **fields)

    def started(self, at: float, attempt: int = 0, **fields: Any) -> "Story":
        return self.tell(at, "attempt_started", attempt=attempt, **fields)

    def phase(
        self, start: float, end: float | None, phase: str, attempt: int = 0, rank: int = 0, **fields: Any
    ) -> "Story":
        span = fields.pop("span", f"s{len(self.events)}")
        self.tell(start, "phase_started", attempt=attempt, rank=rank, span=span, phase=phase, **fields)
        if end is not None:
            self.tell(end, "phase_ended", attempt=attempt, rank=rank, span=span)
        return self

    def trains(self, at: float, position: int = 0, attempt: int = 0, step: int = 0, **fields: Any) -> "Story":
        fields.setdefault("report_every_s", 60)
        return self.tell(at, "training_started", attempt=attempt, position=position, step=step, **fields)

    def progress(self, at: float, position: int, attempt: int = 0, step: int | None = None, **fields: Any) -> "Story":
        fields.setdefault("data_wait_us", 0)
        return self.tell(at, "progress", attempt=attempt, position=position, step=step or position, **fields)

    def trained(self, at: float, position: int, attempt: int = 0, **fields: Any) -> "Story":
        return self.tell(at, "training_ended", attempt=attempt, position=position, step=position, **fields)

    def ended(self, at: float, outcome: str, attempt: int = 0, **fields: Any) -> "Story":
        return self.tell(at, "attempt_ended", attempt=attempt, outcome=outcome, **fields)

    def over(self, at: float, outcome: str = "succeeded") -> "Story":
        return self.tell(at, "job_ended", outcome=outcome)

    def state(self, rules: Rules = NO_LIMIT) -> JobState:
        state = JobState(self.job)
        for event in self.events:
            apply(state, event, rules)
        return state

    def at(self, now: float | None = None, rules: Rules = NO_LIMIT) -> Snapshot:
        """Draw the job as of a time."""
        return snapshot(self.state(), rules, None if now is None else START + round(now * 1e6))

    def stages(self, now: float | None = None) -> dict[str, float]:
        return self.at(now).summary.stages

    def segments(self, now: float | None = None) -> list[tuple[int, str, float, float]]:
        """The segments as (attempt, stage, start, end) in seconds."""
        rows = self.at(now).segments
        return [(s.attempt, s.stage, (s.start - START) / 1e6, (s.end - START) / 1e6) for s in rows]
