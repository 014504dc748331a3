"""A job's state as bytes, for changelogs and databases.

The form is JSON, then columns of differences (of progress, which a long job mostly holds), both compressed; and then,
in place of the event ids, 64-bit hashes of them (two ids of one job's last hours share a hash with a chance of about
one in 10^13). Numbers are little-endian.
"""

import json
import struct
import zlib
from base64 import b64decode
from collections.abc import Sequence
from itertools import accumulate
from operator import sub
from typing import Any, Final

from ettwatch_core import records as r
from ettwatch_core.attempts import FixedStart
from ettwatch_core.carry import Carry, Unresolved
from ettwatch_core.gaps import Spent
from ettwatch_core.loop import LoopMark
from ettwatch_core.ranges import Ranges
from ettwatch_core.records import Record
from ettwatch_core.state import JobState, id_hash
from ettwatch_core.tally import Tally
from ettwatch_schemas import AttemptSummary, Segment

__all__ = ["BROKEN", "StateError", "dump", "load", "record_in"]

FORMAT: Final = 2

_WIDTHS: Final = {
    r.PROGRESS: 7,
    r.PHASE_START: 8,
    r.PHASE_END: 5,
    r.TRAINING_START: 7,
    r.TRAINING_END: 7,
    r.DURABLE: 5,
    r.ATTEMPT_START: 7,
    r.ATTEMPT_END: 10,
    r.HEARTBEAT: 4,
    r.SUBMIT: 10,
    r.JOB_END: 5,
}
"""Fields of a record of each kind."""

BROKEN: Final = (zlib.error, struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading broken bytes may raise."""


class StateError(ValueError):
    """Bytes that are no state, or one of a form that this version does not know."""


def dump(state: JobState) -> bytes:
    """Return the state as bytes, independent of the order in which its events came."""
    progress: list[tuple[int, int, Record]] = []
    others: list[tuple[int, int, Record]] = []
    for key, rec in state.records.items():
        rows = others if rec[0] else progress
        rows.append((rec[1], key if isinstance(key, int) else id_hash(key), rec))
    progress.sort()
    others.sort()
    columns = _Columns()
    body = {
        "format": FORMAT,
        "job": state.job,
        "newest": state.newest,
        "accepted": state.accepted,
        "settle_from": state.settle_from,
        "flags": sorted(state.flags),
        "carry": None if state.carry is None else _carry_out(state.carry, columns),
        "progress": [columns.write(values) for values in list(zip(*(rec for _, _, rec in progress), strict=True))[1:]],
        "others": [rec for _, _, rec in others],
    }
    text = json.dumps(body, separators=(",", ":")).encode()
    keys = [key for _, key, _ in (*progress, *others)]
    return zlib.compress(b"\n".join((text, columns.data)), 4) + struct.pack(f"<{len(keys)}Q", *keys)


def load(data: bytes) -> JobState:
    """Return the state that was dumped, by this version or one before.

    Raises:
        StateError: What the bytes are not, or which form this version does not know.
    """
    try:
        stream = zlib.decompressobj()
        text, _, columns = stream.decompress(data).partition(b"\n")
        body = json.loads(text)
        form = body["format"]
        if form == 1:
            return _state(body, _Columns(b""), _from_form_1(body))
        if form == FORMAT:
            return _state(body, _Columns(columns), stream.unused_data)
    except BROKEN as error:
        raise StateError(f"not a stored job state: {error}") from error
    raise StateError(
        f"stored job state has format {form}, this version reads up to {FORMAT}: use the version that wrote it"
    )


def _state(body: dict[str, Any], columns: "_Columns", ids: bytes) -> JobState:
    state = JobState(body["job"])
    state.newest, state.accepted, state.settle_from = body["newest"], body["accepted"], body["settle_from"]
    state.flags = set(body["flags"])
    state.carry = None if body["carry"] is None else _carry_in(body["carry"], state.job, columns)
    state.hashed = True
    values = zip(*[columns.read(column) for column in body["progress"]], strict=True)
    records = [(r.PROGRESS, *row) for row in values] + [record_in(rec) for rec in body["others"]]
    state.records = dict(zip(struct.unpack(f"<{len(ids) // 8}Q", ids), records, strict=True))
    return state


def _from_form_1(body: dict[str, Any]) -> bytes:
    """Change a body of form 1, in which all was JSON, into one of form 2; return the hashes of the ids."""

    def plain(differences: list[int | None]) -> list[Any]:
        if not differences or differences[0] is None:
            return ["", *differences[1:]]
        return ["", *accumulate(v for v in differences if v is not None)]

    body["progress"] = [plain(column) for column in body["progress"]]
    carry = body["carry"]
    if carry is not None:
        for spent in (carry["spent"], *(rows for _, rows in carry["unresolved"])):
            spent[:] = [plain(spent[0]), plain(spent[1]), ["", *spent[2]]]
    return b"".join(map(b64decode, body["ids"]))


class _Columns:
    """Columns of numbers as bytes.

    A column is the differences between its values: first the lowest byte of each, then the next byte of each, and so
    on, for equal bytes side by side compress well. What it takes to read them stands in the JSON: code and count of
    the differences, where they begin, the first value. A column of equal values has the code "=" and no differences;
    one in which some value is missing has no code, and its values stand there.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def write(self, values: Sequence[int | None]) -> list[Any]:
        """Append a column; return what stands for it in the JSON."""
        if not values:
            return [""]
        if values.count(values[0]) == len(values):
            return ["=", len(values), values[0]]
        if None in values:
            return ["", *values]
        differences = list(map(sub, values[1:], values))
        for code in "bhiq":
            try:
                raw = struct.pack(f"<{len(differences)}{code}", *differences)
            except struct.error:
                continue
            at, width = len(self.data), struct.calcsize(code)
            self.data += b"".join(raw[i::width] for i in range(width))
            return [code, len(differences), at, values[0]]
        return ["", *values]

    def read(self, column: list[Any]) -> list[Any]:
        """Return the values of what stands for a column."""
        code, *rest = column
        if not code:
            return rest
        if code == "=":
            count, value = rest
            return [value] * count
        count, at, first = rest
        width = struct.calcsize(code)
        raw = bytearray(count * width)
        for i in range(width):
            raw[i::width] = self.data[at + i * count : at + (i + 1) * count]
        return list(accumulate(struct.unpack(f"<{count}{code}", raw), initial=first))


def record_in(rec: list[Any]) -> Record:
    """Return a record that was stored as a JSON array.

    Raises:
        ValueError: If it is none.
    """
    if len(rec) != _WIDTHS.get(rec[0]):
        raise ValueError(f"{rec} is no record")
    if rec[0] == r.SUBMIT:
        rec[9] = tuple((name, value) for name, value in rec[9])
    return tuple(rec)


def _tally_out(tally: Tally) -> list[Any]:
    return [tally.stages, tally.hidden, tally.gpu_effective, tally.gpu_total, tally.gpu_waited]


def _carry_out(c: Carry, columns: _Columns) -> dict[str, Any]:
    f, m = c.fixed, c.mark
    return {
        "until": c.until,
        "t0": c.t0,
        "fixed": [f.number, f.start, f.floor, f.told, f.gpus, f.world_size, f.trigger],
        "submit": c.submit,
        "told_floor": c.told_floor,
        "passed": [c.passed.lows, c.passed.highs],
        "tally": _tally_out(c.tally),
        "current": _tally_out(c.current),
        "partial": _segments_out(c),
        "counts": [c.attempts, c.interruption, c.tts, c.recovery, c.nof, c.nof_infra, c.nof_preempted, c.unsaved],
        "ttr": c.ttr,
        "durables": c.durables,
        "numbers": [c.numbers.lows, c.numbers.highs],
        "default_gpus": c.default_gpus,
        "mark": None if m is None else [getattr(m, name) for name in LoopMark.__slots__],
        "spent": _spent_out(c.spent, columns),
        "flags": [sorted(c.flags), sorted(c.current_flags)],
        "unresolved": [[u.summary.model_dump(mode="json"), _spent_out(u.spent, columns)] for u in c.unresolved],
    }


def _carry_in(body: dict[str, Any], job: str, columns: _Columns) -> Carry:
    counts = body["counts"]
    return Carry(
        until=body["until"],
        t0=body["t0"],
        fixed=FixedStart(*body["fixed"]),
        submit=None if body["submit"] is None else record_in(body["submit"]),
        told_floor=body["told_floor"],
        passed=Ranges(*body["passed"]),
        tally=Tally(*body["tally"]),
        current=Tally(*body["current"]),
        partial=_segments_in(body["partial"], job),
        attempts=counts[0],
        interruption=counts[1],
        tts=counts[2],
        ttr=body["ttr"],
        recovery=counts[3],
        nof=counts[4],
        nof_infra=counts[5],
        nof_preempted=counts[6],
        unsaved=counts[7],
        durables=[(ts, position) for ts, position in body["durables"]],
        numbers=Ranges(*body["numbers"]),
        default_gpus=body["default_gpus"],
        mark=None if body["mark"] is None else LoopMark(*body["mark"]),
        spent=_spent_in(body["spent"], columns),
        flags=set(body["flags"][0]),
        current_flags=set(body["flags"][1]),
        unresolved=[
            Unresolved(AttemptSummary.model_validate(summary), _spent_in(spent, columns))
            for summary, spent in body["unresolved"]
        ],
    )


def _spent_out(spent: list[Spent], columns: _Columns) -> list[Any]:
    return [columns.write([row[i] for row in spent]) for i in range(3)]


def _spent_in(body: list[Any], columns: _Columns) -> list[Spent]:
    """The time of a settled row is not needed any more."""
    lows, highs, amounts = map(columns.read, body)
    return [(low, high, amount, 0) for low, high, amount in zip(lows, highs, amounts, strict=True)]


def _segments_out(c: Carry) -> list[Any]:
    """Segments follow each other without a gap, so lengths are enough."""
    if not c.partial:
        return []
    kinds = sorted({(s.attempt, s.stage, s.gpus) for s in c.partial})
    index = {kind: i for i, kind in enumerate(kinds)}
    rows = [[index[s.attempt, s.stage, s.gpus], s.end - s.start] for s in c.partial]
    return [c.partial[0].start, kinds, rows]


def _segments_in(body: list[Any], job: str) -> list[Segment]:
    out: list[Segment] = []
    if body:
        at, kinds, rows = body
        for i, length in rows:
            attempt, stage, gpus = kinds[i]
            out.append(Segment(job, attempt, stage, at, at + length, gpus))
            at += length
    return out
