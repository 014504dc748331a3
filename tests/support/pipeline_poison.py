"""Messages that have to be refused, of each sort one."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["POISONS", "Bad"]

_HOUR: Final = 3_600_000_000
_LARGE: Final = 1_100_000
"""Bytes, more than an event may have."""


@dataclass(frozen=True, slots=True)
class Bad:
    """How a message has to be refused.

    Attributes:
        codes: One of these stands in the dead letter.
        index: Of the bad event in an array; None where the whole message is bad.
        name: Of the sort.
        astray: It is sent to a partition where its key does not belong.
    """

    codes: tuple[str, ...]
    index: int | None = None
    name: str = ""
    astray: bool = False


_Made: TypeAlias = tuple[bytes | None, bytes | None, Bad]
_Make: TypeAlias = Callable[[str, int, bytes, int], _Made]
"""Takes the job, the time of its newest event (µs), a good event of it, and a number of its own."""


def _with(line: bytes, number: int, **changes: Any) -> bytes:
    """Return an event under another id, with changes: were it taken, that would be seen."""
    return json.dumps(json.loads(line) | {"id": f"poison-{number}"} | changes).encode()


def _not_json(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), line[: len(line) // 2], Bad(("bad_json",))


def _not_utf8(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), _with(line, number, host="x?x").replace(b"x?x", b"x\xffx"), Bad(("not_utf8", "bad_json"))


def _unknown_kind(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), _with(line, number, kind="coffee_break"), Bad(("unknown_kind",))


def _seconds(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), _with(line, number, ts=newest // 1_000_000), Bad(("wrong_time_unit",))


def _nan(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), _with(line, number, step=float("nan")), Bad(("not_finite",))


def _too_large(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), _with(line, number, host="x" * _LARGE), Bad(("too_large",))


def _empty(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), b"", Bad(("empty", "bad_json"))


def _null(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), None, Bad(("no_value",))


def _wrong_key(job: str, newest: int, line: bytes, number: int) -> _Made:
    return f"not-{job}".encode(), _with(line, number), Bad(("wrong_key",))


def _no_key(job: str, newest: int, line: bytes, number: int) -> _Made:
    return None, _with(line, number), Bad(("wrong_key",))


def _future(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), _with(line, number, ts=time.time_ns() // 1_000 + _HOUR), Bad(("ahead_of_clock",))


def _late(job: str, newest: int, line: bytes, number: int) -> _Made:
    told = {"v": 1, "id": f"poison-{number}", "kind": "heartbeat", "job": job, "attempt": 0, "ts": newest - 7 * _HOUR}
    return job.encode(), json.dumps(told).encode(), Bad(("late",))


def _astray(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), _with(line, number), Bad(("wrong_partition",), astray=True)


def _in_array(job: str, newest: int, line: bytes, number: int) -> _Made:
    return job.encode(), b"[" + _with(line, number, kind="tea") + b"," + line + b"]", Bad(("unknown_kind",), index=0)


POISONS: Final[tuple[tuple[str, _Make], ...]] = (
    ("not JSON", _not_json),
    ("not UTF-8", _not_utf8),
    ("unknown kind", _unknown_kind),
    ("time in seconds", _seconds),
    ("NaN", _nan),
    ("too large", _too_large),
    ("empty", _empty),
    ("null", _null),
    ("wrong key", _wrong_key),
    ("no key", _no_key),
    ("from the future", _future),
    ("too late", _late),
    ("wrong partition", _astray),
    ("bad in an array", _in_array),
)
"""Each with its name."""
