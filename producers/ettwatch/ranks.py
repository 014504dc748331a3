"""The ranks that torchelastic starts under a launcher, found among the processes of this machine (Linux).

They need not record anything: their environment says which restart they belong to.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic, sleep
from typing import Final, NamedTuple

from ettwatch.names import MAX_COUNT

_KERNEL_THREAD: Final = 0x00200000
"""In the flags of a process (PF_KTHREAD)."""


class Rank(NamedTuple):
    """One process that torchelastic started as a rank."""

    pid: int
    ticks: int
    """When it was started, in clock ticks since the machine was; with the pid it names the process for good."""
    attempt: int
    world_size: int | None


class Ranks:
    """Looks for the ranks of one launch. Where there is no /proc it finds none."""

    def __init__(self, run_dir: str, proc: str = "/proc") -> None:
        self._mark = f"ETTWATCH_RUN_DIR={run_dir}".encode() if run_dir else b""
        self._proc = proc
        self._strangers: set[int] = set()

    def look(self) -> list[Rank]:
        """Return the ranks that live now."""
        if not self._mark:
            return []
        pids = self._pids()
        self._strangers &= pids
        return list(filter(None, (self._rank(pid) for pid in pids - self._strangers)))

    def _pids(self) -> set[int]:
        try:
            return {int(name) for name in os.listdir(self._proc) if name.isdecimal()}
        except OSError:
            return set()

    def _rank(self, pid: int) -> Rank | None:
        try:
            with open(f"{self._proc}/{pid}/environ", "rb") as file:
                text = file.read()
            if not text and not self._is_of_kernel(pid):
                return None  # in the middle of becoming another program: there is none for a moment
            told = text.split(b"\0")
            if self._mark not in told:
                # For good: whatever the command starts has the mark from its first moment on.
                self._strangers.add(pid)
                return None
            env = dict(item.split(b"=", 1) for item in told if b"=" in item)
            if b"TORCHELASTIC_RUN_ID" not in env:
                return None
            attempt = _number(env, b"ETTWATCH_ATTEMPT") + _number(env, b"TORCHELASTIC_RESTART_COUNT")
            return Rank(pid, self._ticks(pid), min(attempt, MAX_COUNT), _number(env, b"WORLD_SIZE") or None)
        except (OSError, ValueError, IndexError):  # of another user, or over
            self._strangers.add(pid)
            return None

    def _ticks(self, pid: int) -> int:
        return int(self._stat(pid)[19])

    def _is_of_kernel(self, pid: int) -> bool:
        return bool(int(self._stat(pid)[6]) & _KERNEL_THREAD)

    def _stat(self, pid: int) -> list[str]:
        """Return what follows the name of the program: the state comes first."""
        with open(f"{self._proc}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()

    def end(self, grace_s: float) -> int:
        """End the ranks that live: SIGTERM, after `grace_s` seconds SIGKILL; return how many there were.

        For when their agent is gone. They would train on, beside the next attempt.
        """
        found = self.look()
        left = found
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = [rank for rank in left if self._send(rank, number)]
            deadline = monotonic() + (grace_s if number == signal.SIGTERM else 1.0)
            while left and monotonic() < deadline:
                sleep(0.02)
                left = [rank for rank in left if self._send(rank, 0)]
        return len(found)

    def _send(self, rank: Rank, number: int) -> bool:
        """Send a signal to a rank; False if it is over."""
        with suppress(OSError, ValueError, IndexError):
            if self._ticks(rank.pid) == rank.ticks and not self._is_zombie(rank.pid):
                os.kill(rank.pid, number)
                return True
        return False

    def _is_zombie(self, pid: int) -> bool:
        return self._stat(pid)[0] in "ZX"


def age_us(ticks: int) -> int:
    """Return how long ago, in microseconds, a process was started that tells `ticks`."""
    with open("/proc/uptime", encoding="ascii") as file:
        up_s = float(file.read().split()[0])
    return max(int((up_s - ticks / os.sysconf("SC_CLK_TCK")) * 1e6), 0)


def by_attempt(ranks: list[Rank]) -> Iterator[Rank]:
    """Yield the rank that was started first of each attempt, in order of the attempts."""
    first: dict[int, Rank] = {}
    for rank in sorted(ranks, key=lambda rank: rank.ticks):
        first.setdefault(rank.attempt, rank)
    for attempt in sorted(first):
        yield first[attempt]


def _number(env: dict[bytes, bytes], name: bytes) -> int:
    text = env.get(name, b"0").decode("ascii", "replace")
    return int(text) if text.isdecimal() else 0
