"""What a worker tells of the jobs of one partition, and what it should tell."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from ettwatch_core import JobState, Publication, Rules, Settled, Verdict, apply, settle, snapshot
from ettwatch_schemas import (
    Event,
    PhaseKey,
    decode_attempts,
    decode_phases,
    decode_segments,
    decode_summary,
)
from support.clickhouse import Truth, should_be
from support.readers import Message, Reader, messages

SECOND: Final = 1_000_000


def fold(job: str, records: Iterable[Iterable[Event]], rules: Rules, clock_us: int | None) -> Truth:
    """What is true of a job at some clock by one fold of all its records, in their order."""
    state = JobState(job)
    finals: list[Settled] = []
    for record in records:
        verdicts = {apply(state, event, rules) for event in record}
        if verdicts & {Verdict.ACCEPTED, Verdict.CONFLICT} and (settled := settle(state, rules)) is not None:
            finals.append(settled)
    return should_be(snapshot(state, rules, clock_us), finals)


def clock_of(summary_version: int) -> int:
    """The second up to which a summary tells, in microseconds."""
    return (summary_version & 0xFFFFFFFF) * SECOND


class Readers:
    """The sink's side: rows of all jobs, and whether one version ever said two things."""

    def __init__(self) -> None:
        self.jobs: dict[str, Reader] = {}
        self.told: list[tuple[str, Message]] = []
        self._said: dict[Any, Any] = {}

    def publish(self, publication: Publication) -> None:
        """Take what a lane returned."""
        updates: list[Any] = [publication.summary, *publication.attempts, *publication.phases, *publication.segments]
        job = next((update.job for update in updates if update is not None), "")
        for message in messages(publication):
            self.take(job, message)

    def take(self, job: str, message: Message) -> None:
        """Take one message of one of the topics."""
        self.told.append((job, message))
        self.jobs.setdefault(job, Reader()).take([message])
        for key, row in _rows(*message):
            assert self._said.setdefault((job, message[0], *key), row) == row, f"two contents of one version: {key}"

    def pass_over_what_came_after_its_time(self) -> set[str]:
        """Read jobs anew by version of which something older came behind the last whole publication; return them.

        A worker that stood still for minutes in the middle of sending may tell of rows that its successor never had.
        They stay until the successor's last word on the job.
        """
        newest: dict[tuple[str, str], int] = {}
        disturbed: set[tuple[str, str]] = set()
        for job, (kind, data) in self.told:
            if kind == "jobs":
                continue
            update = _DECODE[kind](data)
            place = job, kind
            if update.version < newest.get(place, 0):
                disturbed.add(place)
            elif update.whole:
                newest[place] = update.version
                disturbed.discard(place)
        jobs = {job for job, _ in disturbed}
        for job in jobs:
            mine = [message for name, message in self.told if name == job]
            self.jobs[job] = Reader()
            self.jobs[job].take(sorted(mine, key=lambda message: _DECODE[message[0]](message[1]).version))
        return jobs

    def check(self, job: str, records: Iterable[Iterable[Event]], rules: Rules) -> Truth:
        """Compare with a fold at the same clock; return what is true."""
        found = self.jobs[job].truth()
        assert found == fold(job, records, rules, clock_of(found.summary.version))
        return found


_DECODE: Final[dict[str, Callable[[bytes], Any]]] = {
    "jobs": decode_summary,
    "attempts": decode_attempts,
    "phases": decode_phases,
    "segments": decode_segments,
}


def _rows(kind: str, data: bytes) -> list[tuple[tuple[Any, ...], Any]]:
    """Each row of a message by its key and version."""
    match kind:
        case "jobs":
            summary = decode_summary(data)
            return [((summary.version,), summary)]
        case "attempts":
            update = decode_attempts(data)
            return [((update.version, row.attempt), row) for row in (*update.open, *update.final)]
        case "phases":
            phases = decode_phases(data)
            return [((phases.version, PhaseKey.of(row)), row) for row in (*phases.open, *phases.final)]
        case _:
            segments = decode_segments(data)
            return [((segments.version, hour.cell), hour) for hour in segments.hours]
