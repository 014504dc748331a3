"""A job's state as bytes, for changelogs and databases.

The form is compressed JSON: columns of differences for progress (what a long job mostly holds), plain rows for the
rest, and 64-bit hashes in place of event ids (two ids of one job's last hours share a hash with a chance of about one
in 10^13).
"""

import json
import zlib
from array import array
from base64 import b64decode, b64encode
from itertools import accumulate, pairwise
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

__all__ = ["StateError", "dump", "load"]

FORMAT: Final = 1


class StateError(ValueError):
    """Bytes that are no state, or one of a form that this version does not know."""


def dump(state: JobState) -> bytes:
    """Return the state as bytes, independent of the order in which its events came."""
    rows = sorted((rec[1], key if isinstance(key, int) else id_hash(key), rec) for key, rec in state.records.items())
    progress = [(key, rec) for _, key, rec in rows if rec[0] == r.PROGRESS]
    others = [(key, rec) for _, key, rec in rows if rec[0] != r.PROGRESS]
    body = {
        "format": FORMAT,
        "job": state.job,
        "newest": state.newest,
        "accepted": state.accepted,
        "settle_from": state.settle_from,
        "flags": sorted(state.flags),
        "carry": None if state.carry is None else _carry_out(state.carry),
        "ids": [_pack([key for key, _ in progress]), _pack([key for key, _ in others])],
        "progress": [_differences([rec[i] for _, rec in progress]) for i in range(1, 7)],
        "others": [rec for _, rec in others],
    }
    return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 6)


def load(data: bytes) -> JobState:
    """Return the state that was dumped.

    Raises:
        StateError: What the bytes are not, or which form this version does not know.
    """
    try:
        body = json.loads(zlib.decompress(data))
        form = body["format"]
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise StateError(f"not a stored job state: {error}") from error
    if form != FORMAT:
        raise StateError(
            f"stored job state has format {form}, this version reads {FORMAT}: use the version that wrote it"
        )
    state = JobState(body["job"])
    state.newest, state.accepted, state.settle_from = body["newest"], body["accepted"], body["settle_from"]
    state.flags = set(body["flags"])
    state.carry = None if body["carry"] is None else _carry_in(body["carry"], state.job)
    state.hashed = True
    columns = [_sums(column) for column in body["progress"]]
    progress = ((r.PROGRESS, *values) for values in zip(*columns, strict=True))
    state.records = dict(zip(_unpack(body["ids"][0]), progress, strict=True))
    for key, rec in zip(_unpack(body["ids"][1]), body["others"], strict=True):
        state.records[key] = _row(rec)
    return state


def _row(rec: list[Any]) -> Record:
    if rec[0] == r.SUBMIT:
        rec[9] = tuple((name, value) for name, value in rec[9])
    return tuple(rec)


def _pack(keys: list[int]) -> str:
    packed = array("Q", keys)
    return b64encode(packed.tobytes()).decode()


def _unpack(text: str) -> list[int]:
    packed = array("Q")
    packed.frombytes(b64decode(text))
    return packed.tolist()


def _differences(values: list[int | None]) -> list[int | None]:
    """Return the first value and then the differences; as they are where one is missing."""
    if not values or None in values:
        return [None, *values]
    whole: list[int] = [v for v in values if v is not None]
    return [whole[0], *(b - a for a, b in pairwise(whole))]


def _sums(values: list[int | None]) -> list[int | None]:
    if not values or values[0] is None:
        return values[1:]
    return list(accumulate(v for v in values if v is not None))


def _tally_out(tally: Tally) -> list[Any]:
    return [tally.stages, tally.hidden, tally.gpu_effective, tally.gpu_total, tally.gpu_waited]


def _carry_out(c: Carry) -> dict[str, Any]:
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
        "spent": _spent_out(c.spent),
        "flags": [sorted(c.flags), sorted(c.current_flags)],
        "unresolved": [[u.summary.model_dump(mode="json"), _spent_out(u.spent)] for u in c.unresolved],
    }


def _carry_in(body: dict[str, Any], job: str) -> Carry:
    counts = body["counts"]
    return Carry(
        until=body["until"],
        t0=body["t0"],
        fixed=FixedStart(*body["fixed"]),
        submit=None if body["submit"] is None else _row(body["submit"]),
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
        spent=_spent_in(body["spent"]),
        flags=set(body["flags"][0]),
        current_flags=set(body["flags"][1]),
        unresolved=[
            Unresolved(AttemptSummary.model_validate(summary), _spent_in(spent))
            for summary, spent in body["unresolved"]
        ],
    )


def _spent_out(spent: list[Spent]) -> list[Any]:
    return [_differences([row[i] for row in spent]) for i in (0, 1)] + [[row[2] for row in spent]]


def _spent_in(body: list[Any]) -> list[Spent]:
    """The time of a settled row is not needed any more."""
    lows, highs = ([v or 0 for v in _sums(column)] for column in body[:2])
    return [(low, high, amount, 0) for low, high, amount in zip(lows, highs, body[2], strict=True)]


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
