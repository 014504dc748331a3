"""What a job's state gained lately, as bytes: small enough to be written after every flush.

A changelog holds a job as one whole state (:func:`~ettwatch_core.codec.dump`, the base) and the tails written after
it. ``load(base)``, grown by the tails in their order, is the state again. Tails may overlap and may come twice.

The form is a JSON array, compressed where it is long: format, newest, accepted, settle_from, flags, and a row for each
record. Times in it are differences to newest.
"""

import json
import zlib
from itertools import islice
from typing import Any, Final

from ettwatch_core.codec import BROKEN, StateError, record_in
from ettwatch_core.state import JobState, id_hash

__all__ = ["grow", "tail"]

FORMAT: Final = 1
_LONG: Final = 8_192
"""Bytes from which on compression is worth its time: about five records."""
_HEAD: Final = 5

_encode = json.JSONEncoder(separators=(",", ":")).encode


def tail(state: JobState, count: int) -> bytes:
    """Return the newest ``count`` accepted records, and what else changes with every event. The job is not named.

    A tail tells of records that were added, not of records that changed or went. So after a ``CONFLICT``, and after a
    :func:`~ettwatch_core.settle.settle` that settled something, a base has to be written, and the count begins anew.

    Args:
        state: Is not changed.
        count: Events accepted since the base, or since the tail that this one is to follow. More than that does no
            harm.
    """
    newest = state.newest
    rows = [
        (key if isinstance(key, int) else id_hash(key), rec[0], newest - rec[1], *rec[2:])
        for key, rec in islice(reversed(state.records.items()), count)
    ]
    rows.reverse()
    head = (FORMAT, newest, state.accepted, state.settle_from - newest, sorted(state.flags))
    data = _encode((*head, *rows)).encode()
    return data if len(data) < _LONG else zlib.compress(data, 1)


def grow(state: JobState, data: bytes) -> None:
    """Take a tail into a state that holds everything before it. What the state holds already stays as it is.

    Args:
        state: Of the same job. Changed in place; as it was when an error is raised.
        data: What :func:`tail` returned.

    Raises:
        StateError: What the bytes are not, which form this version does not know, or how many events are missing
            between the state and the tail.
    """
    try:
        body = json.loads((data if data[:1] == b"[" else zlib.decompress(data)).decode())
        form = body[0]
        if form == FORMAT:
            newest, accepted, settle_after, flags = _head(body)
            added = {_key(row[0]): record_in([row[1], newest - row[2], *row[3:]]) for row in body[_HEAD:]}
    except BROKEN as error:
        raise StateError(f"not a tail of a job state: {error}") from error
    if form != FORMAT:
        raise StateError(
            f"tail of a job state has format {form}, this version reads {FORMAT}: use the version that wrote it"
        )
    missing = accepted - len(added) - state.accepted
    if missing > 0:
        raise StateError(
            f"{missing} event{'s' if missing > 1 else ''} of job {state.job} missing between the state "
            f"({state.accepted} accepted) and this tail (the last {len(added)} of {accepted}): take the tails in "
            "between first"
        )
    state.flags |= flags
    state.settle_from = max(state.settle_from, newest + settle_after)
    if accepted <= state.accepted:
        return  # the state holds them all, or has settled them since
    if not state.hashed:
        records = state.records.items()
        state.records = {key if isinstance(key, int) else id_hash(key): record for key, record in records}
        state.hashed = True
    for key, record in added.items():
        state.records[key] = record
    state.newest, state.accepted = newest, accepted
    state.draft = None


def _head(body: list[Any]) -> tuple[int, int, int, set[str]]:
    _, newest, accepted, settle_after, flags = body[:_HEAD]
    if not (type(newest) is type(accepted) is type(settle_after) is int and isinstance(flags, list)):
        raise ValueError("its head is broken")
    return newest, accepted, settle_after, {str(flag) for flag in flags}


def _key(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no hash of an event id")
    return value
