"""Word from the ranks to their launcher, as small files in a folder that it made for them.

`attempt-<n>`: attempt n was recorded. `failed-<n>-<rank>` and `ended-<n>-<rank>`: JSON with `ts` (microseconds),
`outcome`, `cause` and `message`.
"""

import json
import os
from typing import Literal, NamedTuple

from ettwatch.names import CAUSES, OUTCOMES


class Note(NamedTuple):
    """What a rank says of its end."""

    ts: int
    outcome: str
    cause: str | None
    message: str | None


def leave_attempt(folder: str, attempt: int) -> None:
    """Say that an attempt of this number runs. Raises OSError."""
    os.close(os.open(os.path.join(folder, f"attempt-{attempt}"), os.O_WRONLY | os.O_CREAT, 0o644))


def leave_note(folder: str, kind: Literal["failed", "ended"], attempt: int, rank: int, note: Note) -> None:
    """Say how this rank ended. Raises OSError."""
    path = os.path.join(folder, f"{kind}-{attempt}-{rank}")
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        json.dump(note._asdict(), file)
    os.replace(f"{path}.tmp", path)


def latest_attempt(folder: str, least: int) -> int:
    """Return the largest attempt number that a rank left, at least `least`."""
    numbers = [name.removeprefix("attempt-") for name in _names(folder) if name.startswith("attempt-")]
    return max([least, *(int(number) for number in numbers if number.isdecimal())])


def read_note(folder: str, kind: Literal["failed", "ended"], attempt: int) -> Note | None:
    """Return the earliest note of this kind of an attempt: what failed first drew the others with it."""
    names = [name for name in _names(folder) if name.startswith(f"{kind}-{attempt}-") and not name.endswith(".tmp")]
    notes = filter(None, (_read(os.path.join(folder, name)) for name in names))
    return min(notes, key=lambda note: note.ts, default=None)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read(path: str) -> Note | None:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        cause, message = found.get("cause"), found.get("message")
        return Note(
            int(found["ts"]),
            found["outcome"] if found["outcome"] in OUTCOMES else "failed",
            cause if cause in CAUSES else None,
            str(message) if message else None,
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
