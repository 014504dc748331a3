"""How the state of live jobs lies in the table: few bytes for each change, and nothing that a stale writer could spoil.

A job has a *base*, its whole state, and after it *notes*: what was accepted since. A flush writes one small note for
each job that changed. Every sixteenth note is a *wide* one that repeats the fifteen before it, and after 15 wide ones
a new base is written. So an event is written about three times in all, however long its job runs, and a job has at
most 33 records to read when a worker takes it over.

Keys hold the *epoch* of the owner: whoever takes a job over begins with a base in an epoch of its own, greater than
any before. What a worker that lost the partition still writes lies in an older epoch, and counts for nothing.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ettwatch_core import JobState, StateError, dump, grow, load, tail

__all__ = ["SLOTS", "Head", "Shelf", "StoredPart", "Write", "read_head", "split_key"]

SLOTS: Final = 16
"""Notes of each kind that a job has at most."""

_WIDEST: Final = SLOTS * (SLOTS - 1)
"""Notes after which a base is due: wide slots must not be used twice before."""

_FORMAT: Final = 1
_HEAD: Final = struct.Struct(">BQIQQQB")
_EPOCH: Final = struct.Struct(">Q")
_KEY_TAIL: Final = 1 + _EPOCH.size + 2

Write = tuple[bytes, bytes | None]
"""A key and its new value; None deletes it."""


class StoredPart(Protocol):
    """One partition of the table."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""

    def __contains__(self, key: bytes) -> bool:
        """Tell whether there is a value."""

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        """Yield all keys and values."""


class Head(NamedTuple):
    """What stands before the state in every record.

    Attributes:
        epoch: Of the owner that wrote it.
        number: Counts the writes of the job in that epoch.
        offset: The next offset of the events topic that is not in it.
        due: When the job has to be looked at (µs); 0: never.
        arrived: When its latest event arrived (µs).
        status: Its status, as a number (see `STATUSES` in live).
    """

    epoch: int
    number: int
    offset: int
    due: int
    arrived: int
    status: int

    def pack(self) -> bytes:
        """Return it as bytes."""
        return _HEAD.pack(_FORMAT, *self)


def read_head(value: bytes) -> Head:
    """Read it from the begin of a value. Raises StateError for a form that this version does not know."""
    if len(value) < _HEAD.size:
        raise StateError("not a stored job state: it is too short; was the changelog written by ettwatch?")
    form, *rest = _HEAD.unpack_from(value)
    if form != _FORMAT:
        raise StateError(
            f"stored job state has form {form}, this version reads {_FORMAT}: use the version that wrote it"
        )
    return Head(*rest)


def split_key(key: bytes) -> tuple[bytes, int, bytes] | None:
    """Return job, epoch and slot; None if it is no key of a job."""
    if len(key) <= _KEY_TAIL or key[-_KEY_TAIL]:
        return None
    return key[:-_KEY_TAIL], _EPOCH.unpack(key[-_KEY_TAIL + 1 : -2])[0], key[-2:]


_BASE: Final = b"b\0"
_CLOSED: Final = b"x\0"
_NOTES: Final = tuple(b"n" + bytes([i]) for i in range(SLOTS))
_WIDE: Final = tuple(b"w" + bytes([i]) for i in range(SLOTS))
_ALL: Final = (_BASE, _CLOSED, *_NOTES, *_WIDE)


@dataclass(slots=True)
class Shelf:
    """Where one job lies.

    Attributes:
        job: Its name, UTF-8.
        epoch: In which it is written; 0: it was not written by this owner yet.
        old: The epoch in which it was found; 0: it was not.
        number: Writes in this epoch so far.
        base_at: The number of the base.
        wide_at: The number of the last wide note, or of the base.
        fresh: Records accepted since the last write.
        since_wide: ... since the last wide note.
    """

    job: bytes
    epoch: int = 0
    old: int = 0
    number: int = 0
    base_at: int = 0
    wide_at: int = 0
    fresh: int = 0
    since_wide: int = 0
    whole: bool = True

    def accepted(self) -> None:
        """Take note that a record was appended to the state."""
        self.fresh += 1
        self.since_wide += 1

    def rewritten(self) -> None:
        """Take note that the state changed otherwise: it has to be written whole."""
        self.whole = True

    def write(self, state: JobState, head: Head, epoch: int, found: StoredPart) -> list[Write]:
        """Return what has to be written after a change, the base or note last.

        Args:
            state: Of the job.
            head: Epoch and number in it do not matter.
            epoch: Of this owner, at least; it becomes greater where the job was found in a later one.
            found: The partition, to see which old keys there are.
        """
        gone: list[Write] = []
        if not self.epoch:
            self.epoch = max(epoch, self.old + 1)
            if self.old:
                gone = self._clear(self.old, found)
        self.number += 1
        if self.whole or self.number - self.base_at >= _WIDEST:
            self.whole = False
            self.base_at = self.wide_at = self.number
            self.fresh = self.since_wide = 0
            return [(self._key(_BASE), self._head(head) + dump(state)), *gone]
        if self.number - self.wide_at >= SLOTS:
            slot, count = _WIDE[(self.number - self.base_at) // SLOTS % SLOTS], self.since_wide
            self.wide_at = self.number
            self.since_wide = 0
        else:
            slot, count = _NOTES[self.number % SLOTS], self.fresh
        self.fresh = 0
        return [(self._key(slot), self._head(head) + tail(state, count))]

    def close(self, head: Head, epoch: int, found: StoredPart) -> list[Write]:
        """Return what has to be written when the state is dropped: a mark stays, by which late events are known."""
        if not self.epoch:
            self.epoch = max(epoch, self.old + 1)
        gone = self._clear(self.old, found) if self.old else []
        self.number += 1
        return [(self._key(_CLOSED), self._head(head)), *gone, *self._clear(self.epoch, found)]

    def forget(self, found: StoredPart) -> list[Write]:
        """Return what has to be written so that nothing stays."""
        return [write for epoch in {self.old, self.epoch} - {0} for write in self._clear(epoch, found, closed=True)]

    def load(self, part: StoredPart, *, mine: bool) -> JobState:
        """Read the state of a job that was found in epoch `old`.

        Args:
            part: Where it lies.
            mine: This owner wrote it itself and goes on in that epoch.

        Raises:
            StateError: It cannot be read.
        """
        base = part.get(self._key(_BASE, self.old))
        if base is None:
            raise StateError(f"the state of job {self.job.decode()!r} is not whole: its base is missing")
        state = load(base[_HEAD.size :])
        self.number = self.base_at = self.wide_at = read_head(base).number
        notes: list[tuple[int, bytes]] = []
        for slots, wide in ((_WIDE, True), (_NOTES, False)):
            for slot in slots:
                value = part.get(self._key(slot, self.old))
                if value is not None and (number := read_head(value).number) > self.wide_at:
                    notes.append((number, value))
            notes.sort()
            before = len(state.records)
            for number, value in notes:
                grow(state, value[_HEAD.size :])
                self.number = number
            if wide:
                self.wide_at = self.number
            else:
                self.since_wide = len(state.records) - before
            notes.clear()
        if mine:
            self.epoch, self.whole = self.old, False
        return state

    def _head(self, head: Head) -> bytes:
        return head._replace(epoch=self.epoch, number=self.number).pack()

    def _key(self, slot: bytes, epoch: int | None = None) -> bytes:
        return b"".join((self.job, b"\0", _EPOCH.pack(self.epoch if epoch is None else epoch), slot))

    def _clear(self, epoch: int, found: StoredPart, *, closed: bool = False) -> list[Write]:
        keys = (self._key(slot, epoch) for slot in _ALL if closed or slot != _CLOSED or epoch != self.epoch)
        return [(key, None) for key in keys if key in found]
