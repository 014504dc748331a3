"""What a launcher says of the attempts of a job: those that it starts, and those that torchelastic makes of them."""

import os
from contextlib import suppress

from ettwatch.cgroup import oom_kills
from ettwatch.identity import Identity
from ettwatch.outbox import Outbox
from ettwatch.ranks import Rank, Ranks, age_us, by_attempt
from ettwatch.runfolder import latest_attempt, read_note
from ettwatch.verdict import OUT_OF_MEMORY, Verdict, failure


class Voice:
    """Speaks for one job. Without an outbox (another launcher speaks) it only follows what happens."""

    def __init__(self, identity: Identity, outbox: Outbox | None, run_dir: str) -> None:
        self.identity = identity
        self.ranks = Ranks(run_dir)
        self._outbox = outbox
        self._run_dir = run_dir
        self._seen: dict[int, int] = {}
        """When the ranks of an attempt were started, by attempt, in microseconds."""
        self._kills = oom_kills()

    def started(self, trigger: str | None) -> None:
        """Tell that the attempt begins."""
        self._kills = oom_kills()
        if self._outbox is not None:
            self._outbox.speak_as(self.identity)
            self._outbox.send("attempt_started", gpus=self.identity.gpus, trigger=trigger)

    def follow(self) -> int:
        """Look which attempt the ranks have come to; tell of each that torchelastic began. Return its number."""
        for rank in by_attempt(self.ranks.look()):
            self._saw(rank)
        latest = max([latest_attempt(self._run_dir, self.identity.attempt), *self._seen])
        for number in range(self.identity.attempt + 1, latest + 1):
            if number in self._seen or os.path.exists(self._word_of(number)):
                self._restarted(number)
        return self.identity.attempt

    def _saw(self, rank: Rank) -> None:
        if self._outbox is None or rank.attempt <= self.identity.attempt or rank.attempt in self._seen:
            return
        with suppress(OSError, ValueError, IndexError):
            self._seen[rank.attempt] = ts = self._outbox.clock.now() - age_us(rank.ticks)
            self._outbox.speak_as(self.identity._replace(attempt=rank.attempt))
            self._outbox.send(
                "attempt_started", ts, gpus=self.identity.gpus, world_size=rank.world_size, trigger="failure"
            )
            self._outbox.speak_as(self.identity)

    def _word_of(self, number: int) -> str:
        return os.path.join(self._run_dir, f"attempt-{number}")

    def _restarted(self, number: int) -> None:
        """Torchelastic gave up an attempt and started the ranks again: the one ends where the next begins."""
        if self._outbox is not None:
            now = self._outbox.clock.now()
            ts = self._seen.get(number, now)
            with suppress(OSError):
                written = os.stat(self._word_of(number)).st_mtime_ns // 1000
                ts = min(ts, now - max(_wall_us() - written, 0))
            cause, message = failure(read_note(self._run_dir, "failed", self.identity.attempt))
            if self.was_out_of_memory() and cause != "gpu_memory":
                cause, message = "host_memory", OUT_OF_MEMORY
            self._outbox.send(
                "attempt_ended",
                ts,
                outcome="failed",
                cause=cause or "unknown",
                message=message or "torchelastic started the ranks again",
            )
        self.identity = self.identity._replace(attempt=number)
        if self._outbox is not None:
            self._outbox.speak_as(self.identity)

    def was_out_of_memory(self) -> bool:
        """Tell whether the kernel has killed for memory since this was last asked, or since the attempt began."""
        before, self._kills = self._kills, oom_kills()
        return before is not None and self._kills is not None and self._kills > before

    def ended(self, verdict: Verdict) -> None:
        """Tell how the attempt ended, as far as is known now."""
        if self._outbox is not None:
            self._outbox.speak_as(self.identity)
            self._outbox.send("attempt_ended", **verdict._asdict())

    def heartbeat(self) -> None:
        """Tell that the command lives."""
        if self._outbox is not None:
            self._outbox.retry()
            self._outbox.send("heartbeat")


def _wall_us() -> int:
    from time import time_ns

    return time_ns() // 1000
