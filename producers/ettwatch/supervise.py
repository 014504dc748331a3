"""One run of a command under a launcher, from its start to the end of what it left behind."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final, NamedTuple

from ettwatch.child import Child
from ettwatch.errorstream import ErrorStream
from ettwatch.hang import HangWatch, Patience
from ettwatch.lastwords import Word, in_error_file, in_text
from ettwatch.log import trouble
from ettwatch.moving import read_places
from ettwatch.signals import Signals
from ettwatch.verdict import CANCELLING
from ettwatch.voice import Voice

LOOK_S: Final = 1.0
"""Seconds between two looks at ranks and positions; more where a look takes long."""
SETTLE_S: Final = 0.2
"""Seconds that a scheduler may need to send to the launcher what it sent to the command."""


class Care(NamedTuple):
    """How a command is watched and ended; times in seconds."""

    grace_s: float = 10.0
    """What processes that are asked to end may take."""
    kill_after_s: float | None = None
    """How long the command may live after a signal that ends it; None: as long as it likes."""
    patience: Patience = Patience()
    kill_hung: bool = False
    watch_stderr: bool = True


class Run(NamedTuple):
    """What was seen of one run of a command."""

    exit_code: int | None
    signal: int | None
    received: list[int]
    """Signals that the launcher was sent meanwhile."""
    said: Word | None = None
    hung: str | None = None


class Supervisor:
    """Runs a command once. For the main thread; its own failures are warned of."""

    def __init__(
        self, care: Care, heartbeat_s: float, ending: frozenset[int], voice: Voice | None, say: Callable[[str], None]
    ) -> None:
        self._care = care
        self._heartbeat_s = heartbeat_s
        self._ending = ending
        self._voice = voice
        self._say = say
        self._received: list[int] = []
        self._kill_at: float | None = None
        self._hung: str | None = None
        self._watch = HangWatch(care.patience, monotonic())
        self._attempt = -1
        self._still = False

    def run(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        run_dir: str,
        signals: Signals,
        noted: Callable[[int], None],
    ) -> Run:
        """Run the command to its end. `noted` is told of each signal. Raises OSError if it cannot be started."""
        errors = ErrorStream(run_dir, self._care.watch_stderr)
        error_file = os.path.join(run_dir, "error.json") if run_dir else ""
        try:
            if error_file and not env.get("TORCHELASTIC_ERROR_FILE"):
                # Where `torch.distributed.elastic` leaves what the first rank to fail said; of an earlier run it may
                # have left something, too.
                if os.path.exists(error_file):
                    os.unlink(error_file)
                env = {**env, "TORCHELASTIC_ERROR_FILE": error_file}
            child = Child(command, env, errors.stdout, errors.stderr)
            self._until_end(child, run_dir, errors, signals, noted)
            code, killed_by = child.end(self._care.grace_s)
            if self._voice is not None and self._voice.ranks.end(self._care.grace_s):
                self._say("ranks that the command left behind were ended")
        finally:
            errors.close()
        if not signals.queue and (killed_by in CANCELLING or (code or 0) - 128 in CANCELLING):
            signals.wait(SETTLE_S)
        self._received.extend(signals.queue)
        signals.queue.clear()
        said = (in_error_file(error_file) or in_text(errors.read())) if code != 0 else None
        return Run(code, killed_by, self._received, said, self._hung)

    def _until_end(
        self, child: Child, run_dir: str, errors: ErrorStream, signals: Signals, noted: Callable[[int], None]
    ) -> None:
        now = monotonic()
        beat_at, look_at = now + self._heartbeat_s, now + LOOK_S
        while not child.has_ended():
            signals.wait(min(beat_at, look_at, self._kill_at or beat_at) - monotonic())
            while signals.queue:
                number = signals.queue.popleft()
                child.send(number)
                self._received.append(number)
                noted(number)
                if number in self._ending and self._care.kill_after_s is not None and self._kill_at is None:
                    self._kill_at = monotonic() + self._care.kill_after_s
            now = monotonic()
            if now >= look_at:
                errors.look()
                self._look(child, run_dir, now)
                look_at = monotonic() + max(LOOK_S, 50 * (monotonic() - now))
            if self._kill_at is not None and now >= self._kill_at:
                self._say("the command did not end; it is killed")
                child.kill()
                self._kill_at = None
            if now >= beat_at:
                if self._voice is not None:
                    self._voice.heartbeat()
                beat_at = monotonic() + self._heartbeat_s

    def _look(self, child: Child, run_dir: str, now_s: float) -> None:
        """Look what the ranks do: which attempt they have come to, and whether anything moves."""
        if self._voice is None:
            return
        try:
            attempt = self._voice.follow()
            places = read_places(run_dir, attempt)
        except Exception as error:
            trouble("following the ranks", error)
            return
        if attempt != self._attempt:
            self._attempt, self._watch, self._still = attempt, HangWatch(self._care.patience, now_s), False
        hung = self._watch.look(places, now_s)
        if hung is None:
            if self._still:
                self._say("training moves again")
            self._still = False
        elif not self._still:
            self._still = True
            self._say(f"it hangs: {hung}{'; the command is ended' if self._care.kill_hung else ''}")
            if self._care.kill_hung and not self._received:
                self._hung = hung
                child.send(signal.SIGTERM)
                self._kill_at = now_s + self._care.grace_s
