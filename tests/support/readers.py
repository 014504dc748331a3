"""A reader of what workers publish: the rule by which updates become rows, in memory."""

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from ettwatch_core import Publication
from ettwatch_schemas import (
    AttemptsUpdate,
    JobSummary,
    PhaseKey,
    PhasesUpdate,
    SegmentsUpdate,
    decode_attempts,
    decode_phases,
    decode_segments,
    decode_summary,
    encode_update,
)
from support.clickhouse import Truth

Message: TypeAlias = tuple[str, bytes]
"""Which of the four it is, and its bytes."""


def messages(publication: Publication) -> list[Message]:
    """A publication as it is sent."""
    kinds: list[tuple[str, Iterable[Any]]] = [
        ("phases", publication.phases),
        ("attempts", publication.attempts),
        ("segments", publication.segments),
        ("jobs", [] if publication.summary is None else [publication.summary]),
    ]
    return [(kind, encode_update(update)) for kind, updates in kinds for update in updates]


class _Rows:
    """One table of one job: of the rows of a key the greatest version counts, then the final one, then the last."""

    def __init__(self) -> None:
        self._best: dict[Hashable, tuple[tuple[int, bool], Any]] = {}

    def put(self, key: Hashable, version: int, row: Any, *, final: bool = False) -> None:
        """Store a row; None says that it is gone."""
        rank = (version, final)
        best = self._best.get(key)
        if best is None or rank >= best[0]:
            self._best[key] = (rank, row)

    def pending(self) -> list[Hashable]:
        """Keys of rows that are neither final nor gone."""
        return [key for key, (rank, row) in self._best.items() if row is not None and not rank[1]]

    def rows(self) -> list[Any]:
        """What counts."""
        return [row for _, row in self._best.values() if row is not None]


class Reader:
    """The rows of one job."""

    def __init__(self) -> None:
        self._jobs, self._attempts, self._phases, self._hours = _Rows(), _Rows(), _Rows(), _Rows()

    def take(self, taken: Iterable[Message]) -> None:
        """Take messages in the order in which they were sent, as often as they come."""
        for kind, data in taken:
            match kind:
                case "jobs":
                    self._summary(decode_summary(data))
                case "attempts":
                    self._attempts_update(decode_attempts(data))
                case "phases":
                    self._phases_update(decode_phases(data))
                case _:
                    self._segments_update(decode_segments(data))

    def truth(self) -> Truth:
        """What the rows say."""
        (summary,) = self._jobs.rows()
        hours = sorted(self._hours.rows(), key=lambda hour: hour.cell)
        return Truth(
            summary,
            sorted(self._attempts.rows(), key=lambda a: a.attempt),
            [segment for hour in hours for segment in hour.segments],
            sorted(self._phases.rows(), key=lambda s: (s.attempt, s.start, s.end, s.phase, s.background, s.last_rank)),
        )

    def _summary(self, summary: JobSummary) -> None:
        self._jobs.put("job", summary.version, summary)

    def _attempts_update(self, update: AttemptsUpdate) -> None:
        opened = {a.attempt: a for a in update.open}
        final = {a.attempt: a for a in update.final}
        self._change(self._attempts, update, opened, final)

    def _phases_update(self, update: PhasesUpdate) -> None:
        opened = {PhaseKey.of(span): span for span in update.open}
        final = {PhaseKey.of(span): span for span in update.final}
        self._change(self._phases, update, opened, final)

    def _change(
        self, rows: _Rows, update: AttemptsUpdate | PhasesUpdate, opened: dict[Any, Any], final: dict[Any, Any]
    ) -> None:
        gone = {*update.gone}
        if update.whole:
            gone |= {key for key in rows.pending() if key not in opened and key not in final}
        for key in gone:
            rows.put(key, update.version, None)
        for key, row in opened.items():
            rows.put(key, update.version, row)
        for key, row in final.items():
            rows.put(key, update.version, row, final=True)

    def _segments_update(self, update: SegmentsUpdate) -> None:
        if update.whole:
            for hour in self._hours.rows():
                if update.first is None or update.last is None or not update.first <= hour.cell <= update.last:
                    self._hours.put(hour.cell, update.version, None)
        for hour in update.hours:
            self._hours.put(hour.cell, update.version, hour if hour.segments else None)
