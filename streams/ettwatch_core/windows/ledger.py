"""Where a stage's memory lies in a compacted topic: snapshots, and what was about to be told since the last one. Pure.

A snapshot is written in chunks, into one of two slots in turn, and counts only once the record after them, which names
the slot, is there. So whatever a crash cuts off, one whole snapshot remains. Every owner writes under a number of its
own, its epoch, and of several the greatest counts: what an owner that lost its partition still writes harms nobody.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ettwatch_core.windows.memory import read_places, write_places
from ettwatch_core.windows.parts import Places

__all__ = ["Entry", "Ledger", "LedgerError", "Recovered", "recover"]

_CHUNK: Final = 512 << 10
"""Bytes of a chunk before it is packed, about; a single line may be longer."""

_FORM: Final = 1


class LedgerError(ValueError):
    """What lies in the topic cannot be read. One line."""


class Entry(NamedTuple):
    """A record; without a value it removes the one with its key."""

    key: bytes
    value: bytes | None


@dataclass(slots=True)
class Recovered:
    """What an owner begins with.

    Attributes:
        epoch: The greatest that is known; the new one has to be greater.
        lines: Of the newest whole snapshot; None if there is none.
        layout: For which windows it was made.
        offsets: Scope topic, where it goes on.
        redo: Buckets that were about to be told after it.
        clock: The greatest clock (minutes) that was told.
        keys: All keys of the stage that have a value.
    """

    epoch: int = 0
    lines: list[bytes] | None = None
    layout: str = ""
    offsets: dict[str, int] = field(default_factory=dict)
    redo: list[Places] = field(default_factory=list)
    clock: int = 0
    keys: set[bytes] = field(default_factory=set)


def recover(stage: int, records: Iterable[tuple[bytes, bytes | None]]) -> Recovered:
    """Read a partition of the topic.

    Args:
        stage: 1 or 2.
        records: All of them, in their order.

    Raises:
        LedgerError: They are of another form, or are none of these records.
    """
    held: dict[bytes, bytes] = {}
    for key, value in records:
        if key.startswith(b"%d/" % stage):
            if value is None:
                held.pop(key, None)
            else:
                held[key] = value
    try:
        return _recover(held)
    except LedgerError:
        raise
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise LedgerError(f"a record of the windows' state cannot be read: {type(error).__name__}: {error}") from None


def _recover(held: Mapping[bytes, bytes]) -> Recovered:
    out = Recovered(keys=set(held))
    commits: dict[int, dict[str, Any]] = {}
    notes: list[tuple[tuple[int, int], dict[str, Any]]] = []
    for key, value in held.items():
        what, number = key.decode().split("/")[1:3]
        owner = int(number)
        out.epoch = max(out.epoch, owner)
        if what == "commit":
            commits[owner] = _read(value)
        elif what == "note":
            note = _read(value)
            notes.append(((owner, note["number"]), note))
    since = (-1, -1)
    for epoch, commit in sorted(commits.items(), reverse=True):
        lines = _lines(held, epoch, commit)
        if lines is not None:
            since = (epoch, commit["number"])
            out.lines, out.layout, out.offsets = lines, commit["layout"], commit["offsets"]
            break
    for place, note in sorted(notes, key=lambda each: each[0]):
        out.clock = max(out.clock, note["clock"])
        if place > since:
            out.redo.append(read_places(note["places"]))
    return out


def _lines(held: Mapping[bytes, bytes], epoch: int, commit: Mapping[str, Any]) -> list[bytes] | None:
    """Return the lines of a snapshot; None if it is not whole."""
    lines: list[bytes] = []
    stage = commit["stage"]
    for number in range(commit["chunks"]):
        data = held.get(_chunk_key(stage, epoch, commit["slot"], number))
        if data is None:
            return None
        head, *some = zlib.decompress(data).split(b"\n")
        if head != b"%d" % commit["number"]:
            return None
        lines += some
    return lines


class Ledger:
    """What one owner writes.

    Args:
        stage: 1 or 2.
        epoch: Greater than that of any owner before.
        found: What was there.
    """

    def __init__(self, stage: int, epoch: int, found: Recovered) -> None:
        self.epoch = epoch
        self.notes = 0
        """Notes since the last snapshot."""
        self._stage = stage
        self._number = 0
        self._slot = 0
        self._chunks = [0, 0]
        # Only what owners before wrote: a later one's records are not there to be removed.
        self._old = {key for key in found.keys if int(key.split(b"/")[2]) < epoch}

    def note(self, places: Places, clock: int) -> Entry:
        """Return the record that says what is about to be told; the first one of an owner claims the epoch."""
        self._number += 1
        body = {"v": _FORM, "number": self._number, "clock": clock, "places": write_places(places)}
        key = b"%d/note/%d/%d" % (self._stage, self.epoch, self.notes)
        self.notes += 1
        return Entry(key, _write(body))

    def snapshot(self, lines: Iterable[bytes], layout: str, offsets: Mapping[str, int]) -> Iterator[list[Entry]]:
        """Yield the records of a snapshot: the chunks, then the one that makes it count, then what can go.

        Each list has to be safe before the next one is sent.
        """
        self._number += 1
        slot = self._slot = 1 - self._slot
        number, chunks = self._number, 0
        entries: list[Entry] = []
        for chunks, data in enumerate(_chunks(lines, b"%d" % number), 1):
            entries.append(Entry(_chunk_key(self._stage, self.epoch, slot, chunks - 1), data))
        yield entries
        body = {
            "v": _FORM,
            "number": number,
            "stage": self._stage,
            "slot": slot,
            "chunks": chunks,
            "layout": layout,
            "offsets": dict(offsets),
        }
        yield [Entry(b"%d/commit/%d" % (self._stage, self.epoch), _write(body))]
        surplus = [_chunk_key(self._stage, self.epoch, slot, n) for n in range(chunks, self._chunks[slot])]
        yield [Entry(key, None) for key in [*sorted(self._old), *surplus]]
        self._old.clear()
        self._chunks[slot] = chunks
        self.notes = 0


def _chunk_key(stage: int, epoch: int, slot: int, number: int) -> bytes:
    return b"%d/chunk/%d/%d/%d" % (stage, epoch, slot, number)


def _chunks(lines: Iterable[bytes], head: bytes) -> Iterator[bytes]:
    some, size = [head], 0
    for line in lines:
        if size and size + len(line) > _CHUNK:
            yield zlib.compress(b"\n".join(some), 1)
            some, size = [head], 0
        some.append(line)
        size += len(line) + 1
    if size:
        yield zlib.compress(b"\n".join(some), 1)


def _write(body: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 1)


def _read(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(data))
    if found["v"] != _FORM:
        raise LedgerError(
            f"the state of the windows has form {found['v']!r:.20}, not {_FORM}; use the ettwatch that made it"
        )
    return found
