"""The state of one job, and how one event changes it."""

from enum import Enum
from hashlib import blake2b
from typing import Final, Protocol

from ettwatch_core import records as r
from ettwatch_core.carry import Carry
from ettwatch_core.records import Record, content_key, record_of
from ettwatch_core.rules import Rules
from ettwatch_schemas import Event, component_of

__all__ = ["JobState", "Verdict", "apply"]

_BLANK: Final = blake2b(digest_size=8)


class Follower(Protocol):
    """What is kept beside a state to draw it quickly, as long as new events allow."""

    def follow(self, key: str | int, record: Record) -> bool:
        """Take a new record over; ``False`` if it reaches back too far for that."""


class Verdict(Enum):
    """What became of an event."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    """Had already been applied; changes nothing."""
    CONFLICT = "conflict"
    """Another content was told under the same id. Of the two the smaller (by a fixed order) counts."""
    LATE = "late"
    """Refused: further behind the newest event of its job than the lateness setting, or it would change what was
    settled. Nothing of it was applied."""


class JobState:
    """All that is kept of one job. Opaque to callers but for ``job``, ``newest`` and ``accepted``."""

    __slots__ = ("accepted", "carry", "draft", "flags", "hashed", "job", "newest", "records", "settle_from")

    def __init__(self, job: str) -> None:
        self.job = job
        self.newest = 0
        """Time of the newest event (µs); 0 while there is none."""
        self.accepted = 0
        """Events that changed the state."""
        self.records: dict[str | int, Record] = {}
        """Unsettled records by event id, or, after a load, by the hash of it; those accepted last at the end."""
        self.hashed = False
        self.carry: Carry | None = None
        self.draft: Follower | None = None
        """Made anew whenever it is missing; no part of the stored state."""
        self.flags: set[str] = set()
        self.settle_from = 0
        """Newest event from which on settling is worth a try (µs)."""


def id_hash(event_id: str) -> int:
    """Return the 64 bits by which a stored state knows an event id."""
    digest = _BLANK.copy()  # takes half the time of a new one
    digest.update(event_id.encode())
    return int.from_bytes(digest.digest(), "big")


def apply(state: JobState, event: Event, rules: Rules) -> Verdict:
    """Apply one event. The cost does not grow with the job.

    Args:
        state: Changed in place.
        event: Of this job.
        rules: For the lateness.

    Returns:
        What became of it. ``LATE`` and ``DUPLICATE`` leave the state as it was.
    """
    key: str | int = event.id
    records = state.records
    old = records.get(key)
    if old is None and state.hashed:
        hashed = id_hash(event.id)
        old = records.get(hashed)
        if old is not None:
            key = hashed
    record = record_of(event)
    if old is not None and old == record:
        return Verdict.DUPLICATE
    ts = record[1]
    if rules.lateness is not None and ts < state.newest - rules.lateness:
        return Verdict.LATE
    if state.carry is not None and reaches_back(state.carry, record, state):
        return Verdict.LATE
    state.newest = max(state.newest, ts)
    state.accepted += 1
    if old is not None:
        state.flags.add("id_conflict")
        records[key] = min(old, record, key=content_key)
        state.draft = None
        return Verdict.CONFLICT
    records[key] = record
    if state.draft is not None and not state.draft.follow(key, record):
        state.draft = None
    return Verdict.ACCEPTED


def reaches_back(carry: Carry, record: Record, state: JobState) -> bool:
    """Tell whether a record would change what lies before the carry."""
    kind, ts, attempt = record[0], record[1], record[2]
    if ts < carry.until:
        return True
    if kind == r.SUBMIT:
        moves_t0 = record[8] is not None and record[8] < carry.t0
        return carry.submit is None and (moves_t0 or (carry.default_gpus and record[7] is not None))
    if attempt < 0:
        return False
    current = carry.fixed.number
    if attempt < current:
        # An attempt that is over: what it still says is a zombie's, but it cannot begin, or end (a phase), anew.
        # A number that was no attempt cannot become one.
        if kind == r.PHASE_START and component_of(record[5]) == "scheduling":
            return False
        if kind == r.PHASE_END:
            return not _waiting(state, record)
        return kind in (r.ATTEMPT_START, r.ATTEMPT_END) or not carry.numbers.holds(attempt)
    if attempt == current:
        if kind == r.ATTEMPT_START:
            return not carry.fixed.told
        if kind == r.TRAINING_START:
            return carry.mark is not None and not carry.mark.told
    return False


def _waiting(state: JobState, end: Record) -> bool:
    """Tell whether a ``phase_ended`` belongs to a span whose start is kept."""
    key = (r.PHASE_START, end[2], end[3], end[4])
    return any((rec[0], rec[2], rec[3], rec[4]) == key for rec in state.records.values() if rec[0] == r.PHASE_START)
