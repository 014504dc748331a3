"""What is sent next: lines of the waiting files, checked, as records of one job each."""

import json
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ettwatch.delivery.record import Record
from ettwatch.delivery.waiting import WaitingFile

LOAD_BYTES: Final = 256 * 1024
"""About how much is read, sent and acknowledged at a time."""
RECORD_BYTES: Final = 128 * 1024
RECORD_EVENTS: Final = 500


class Load(NamedTuple):
    """Records in the order in which their events were told, and how far each file will have been sent with them."""

    records: list[Record]
    reach: dict[WaitingFile, int]
    damaged: int
    """Lines that were left out: they are no events."""
    full: bool
    """There may be more at once."""


def load(files: Iterable[WaitingFile], breathe: Callable[[], None]) -> Load:
    """Read what is sent next. `breathe` is called between chunks. Files that cannot be read are left for later."""
    records: list[Record] = []
    reach: dict[WaitingFile, int] = {}
    taken = damaged = size = 0
    for file in files:
        offset = file.offset
        while offset < file.size:
            if taken >= LOAD_BYTES:
                return Load(records, reach, damaged, True)
            try:
                lines = file.read(offset)
                rest = file.size - offset if not lines and file.is_left() else 0
            except OSError:
                break
            if rest:  # the last line of a writer that was killed, or whose machine was
                damaged, offset = damaged + 1, file.size
            for line in lines:
                offset = line.end
                key = key_of(line.text)
                if key is None:
                    damaged += 1
                    continue
                if (
                    not records
                    or records[-1].key != key
                    or size + len(line.text) > RECORD_BYTES
                    or (len(records[-1].lines) >= RECORD_EVENTS)
                ):
                    records.append(Record(key, []))
                    size = 0
                records[-1].lines.append(line.text)
                size += len(line.text) + 1
            if offset == reach.get(file, file.offset):
                break
            taken += offset - reach.get(file, file.offset)
            reach[file] = offset
            breathe()
    return Load(records, reach, damaged, False)


def key_of(line: bytes) -> bytes | None:
    """Return the job of an event in UTF-8; None if the line is no event."""
    try:
        job = json.loads(line)["job"]
        return job.encode() if isinstance(job, str) and job else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def is_passing(line: bytes) -> bool:
    """Tell whether a line is one of those that are dropped first: progress, or a sign of life."""
    try:
        return json.loads(line).get("kind") in ("progress", "heartbeat")
    except (ValueError, AttributeError, RecursionError):
        return False
