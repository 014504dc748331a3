"""From what a job is now, and what is known to be in the database, to the rows that have to be written. No I/O."""

from dataclasses import dataclass, field
from typing import Final

from ettwatch_clickhouse.known import Known, Pending
from ettwatch_clickhouse.rows import (
    Row,
    attempt_content,
    attempt_row,
    cell_row,
    job_content,
    job_row,
    phase_content,
    phase_row,
)
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_core import CELL, Settled, Snapshot, apart, cells, digest_of
from ettwatch_schemas import PhaseKey, Segment

__all__ = ["Changes", "settled_changes", "snapshot_changes"]

_SECONDS_BITS: Final = 32
"""The low bits of a version are the second as of which; those above count events."""


@dataclass(slots=True)
class Changes:
    """Rows by table, in the order in which they have to be written."""

    phases: list[Row] = field(default_factory=list)
    attempts: list[Row] = field(default_factory=list)
    segments: list[Row] = field(default_factory=list)
    jobs: list[Row] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.phases) + len(self.attempts) + len(self.segments) + len(self.jobs)


def snapshot_changes(known: Known, snap: Snapshot, ids: WriteIds, out: Changes) -> None:
    """Add the rows that bring the part of a job that is not final to its snapshot.

    A snapshot made from fewer events than what is in the database adds nothing: whoever wrote that had seen more. The
    first one that is not is written whole. One made from as many is written even where its clock is behind: whoever
    wrote the rest may have died in the middle, or had a clock that was wrong, and no event may come any more. Its rows
    then have the version that is there, so that they count before those.
    """
    summary = snap.summary
    job, version = summary.job, summary.version
    if version < known.floor:
        if _made_from_less(version, known):
            return
        version = known.floor
    known.floor = version
    known.behind = False
    _phases(known, snap, version, ids, out)
    _attempts(known, snap, version, ids, out)
    _cells(known, snap, version, ids, out)
    content = job_content(summary)
    digest = hash((version, repr(content)))
    if digest != known.job_digest:
        known.job_digest = digest
        out.jobs.append(job_row(job, version, ids.next(), content))


def _made_from_less(version: int, known: Known) -> bool:
    """Tell whether a version counts fewer events than what is in the database."""
    return version >> _SECONDS_BITS < known.floor >> _SECONDS_BITS


def _phases(known: Known, snap: Snapshot, version: int, ids: WriteIds, out: Changes) -> None:
    job = snap.summary.job
    spans = {PhaseKey.of(span): span for span in snap.spans}
    for key in [key for key in known.phases if key not in spans]:
        del known.phases[key]
        out.phases.append(phase_row(job, key, version, ids.next(), None, final=False))
    for key, span in spans.items():
        digest = hash(span)
        before = known.phases.get(key)
        if before is None or before.digest != digest:
            known.phases[key] = Pending(digest)
            out.phases.append(phase_row(job, key, version, ids.next(), phase_content(span), final=False))


def _attempts(known: Known, snap: Snapshot, version: int, ids: WriteIds, out: Changes) -> None:
    job = snap.summary.job
    numbers = {attempt.attempt for attempt in snap.attempts}
    for number in [number for number in known.attempts if number not in numbers]:
        del known.attempts[number]
        out.attempts.append(attempt_row(job, number, version, ids.next(), None, final=False))
    for attempt in snap.attempts:
        content = attempt_content(attempt)
        digest = hash(repr(content))
        before = known.attempts.get(attempt.attempt)
        if before is None or before.digest != digest:
            known.attempts[attempt.attempt] = Pending(digest)
            out.attempts.append(attempt_row(job, attempt.attempt, version, ids.next(), content, final=False))


def _cells(known: Known, snap: Snapshot, version: int, ids: WriteIds, out: Changes) -> None:
    job = snap.summary.job
    _empty_cells(known, snap, version, ids, out)
    for cell in [cell for cell in known.cells if cell < snap.final_before]:
        del known.cells[cell]
    rest, filled = apart(snap.segments)
    for cell, segments in cells(rest).items():
        _cell(known, job, cell, version, segments, ids, out)
    for each in filled:
        digest = digest_of(each.hour(0))
        for cell in [cell for cell in range(each.begin, each.end, CELL) if known.cells.get(cell) != digest]:
            _cell(known, job, cell, version, each.hour(cell), ids, out)


def _cell(
    known: Known, job: str, cell: int, version: int, segments: list[Segment], ids: WriteIds, out: Changes
) -> None:
    digest = digest_of(segments)
    if known.cells.get(cell) != digest:
        known.cells[cell] = digest
        known.has_cell(cell)
        out.segments.append(cell_row(job, cell, version, ids.next(), segments))


def _empty_cells(known: Known, snap: Snapshot, version: int, ids: WriteIds, out: Changes) -> None:
    """Empty the hours outside of the job: it looked longer before."""
    if known.first_cell is None or known.last_cell is None:
        return
    job, t0, t1 = snap.summary.job, snap.summary.t0, snap.summary.t1
    first, end = t0 // CELL * CELL, -(-t1 // CELL) * CELL
    if t0 == t1:
        end = first
    outside = [*range(known.first_cell, min(first, known.last_cell + CELL), CELL)]
    outside += range(max(end, known.first_cell), known.last_cell + CELL, CELL)
    for cell in dict.fromkeys(outside):
        known.cells.pop(cell, None)
        out.segments.append(cell_row(job, cell, version, ids.next(), ()))
    if outside:
        low, high = max(known.first_cell, first), min(known.last_cell, end - CELL)
        known.first_cell, known.last_cell = (low, high) if low <= high else (None, None)


def settled_changes(known: Known, job: str, settled: Settled, version: int, ids: WriteIds, out: Changes) -> None:
    """Add the rows of what became final.

    Where someone else's rows were made from more events than this writer knows of, they stay as they are and are only
    marked as final: final means that they are the same.
    """
    old = known.behind and _made_from_less(version, known)
    if not old:
        version = max(version, known.floor)
    for span in {PhaseKey.of(span): span for span in settled.spans}.values():
        key = PhaseKey.of(span)
        kept = known.phases.pop(key, None)
        content, at = _final(kept, phase_content(span), version, known.floor, old)
        out.phases.append(phase_row(job, key, at, ids.next(), content, final=True))
    for attempt in settled.attempts:
        kept = known.attempts.pop(attempt.attempt, None)
        content, at = _final(kept, attempt_content(attempt), version, known.floor, old)
        out.attempts.append(attempt_row(job, attempt.attempt, at, ids.next(), content, final=True))
    for cell, segments in cells(settled.segments).items():
        if not old:
            _cell(known, job, cell, version, segments, ids, out)
        elif known.first_cell is None or known.last_cell is None or not known.first_cell <= cell <= known.last_cell:
            out.segments.append(cell_row(job, cell, 0, ids.next(), segments))
            known.has_cell(cell)


def _final(kept: Pending | None, content: Row, version: int, floor: int, old: bool) -> tuple[Row, int]:
    """Return the content to write as final, and its version."""
    if not old:
        return content, version
    if kept is not None and kept.content is not None:
        return kept.content, floor
    return content, 0  # counts only if nobody wrote this attempt or phase before
