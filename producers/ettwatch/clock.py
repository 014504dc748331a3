"""Wall time that only goes forward: read once, then carried on by the monotonic clock."""

import time

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_TRIES = 5


def boot_id() -> str | None:
    """Return what names this start of this machine, or None where the system does not tell (not Linux)."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return None


def _both() -> tuple[int, int]:
    """Return the wall time (µs) and the monotonic time (ns) of one moment.

    A process may stand still between two readings, which would shift all its times by as much: of some tries that one
    is taken in which least time went by.
    """
    tries = []
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        wall = time.time_ns() // 1000
        after = time.monotonic_ns()
        tries.append((after - before, wall, before + (after - before) // 2))
    _, wall, mono = min(tries)
    return wall, mono


class Clock:
    """Microseconds since the Unix epoch: the wall clock at one moment plus the monotonic time since.

    So a wall clock that is set while the job runs bends no duration. A launcher hands its moment to the processes
    that it starts on the same machine: they all keep one time, however late they were started.
    """

    __slots__ = ("_mono_ns", "_wall_us")

    def __init__(self, wall_us: int | None = None, mono_ns: int | None = None) -> None:
        wall, mono = _both()
        self._wall_us = wall if wall_us is None else wall_us
        self._mono_ns = mono if mono_ns is None else mono_ns

    def now(self) -> int:
        """Return the time now, in microseconds."""
        return self.at(time.monotonic_ns())

    def at(self, mono_ns: int) -> int:
        """Return the time, in microseconds, at which `time.monotonic_ns()` was `mono_ns`."""
        return self._wall_us + (mono_ns - self._mono_ns) // 1000

    def hand_down(self) -> str | None:
        """Return this clock as text for a process on the same machine, None where none could use it."""
        boot = boot_id()
        return f"{self._wall_us}:{self._mono_ns}:{boot}" if boot else None

    @classmethod
    def take_over(cls, text: str | None) -> "Clock":
        """Return the clock that was handed down as `text`; a new one if it is of another machine or malformed."""
        wall, _, rest = (text or "").partition(":")
        mono, _, boot = rest.partition(":")
        if wall.isdecimal() and mono.isdecimal() and boot and boot == boot_id():
            return cls(int(wall), int(mono))
        return cls()
