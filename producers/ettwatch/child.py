"""The command under a launcher: its start, its process group, its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic, sleep

from ettwatch import exec_shim


class Child:
    """A command that leads a process group of its own. Must be made and used by the main thread."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], stdout: int | None = None, stderr: int | None = None
    ) -> None:
        # Not preexec_fn: the kernel's notice is asked for by a script of its own, after the fork and the exec.
        shim = [sys.executable, "-I", "-S", exec_shim.__file__, str(os.getpid())] if sys.executable else []
        # That one is a Python, which is not to meet an interrupt while it starts: it might print, or swallow it.
        held = {signal.SIGINT} if shim and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN else set()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
        try:
            self._process = subprocess.Popen(
                [*shim, *command], env=dict(env), stdout=stdout, stderr=stderr, process_group=0
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.pid = self._process.pid

    def send(self, number: int) -> None:
        """Send a signal to the command; not to its whole group, whose other members may not expect it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the command and its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def has_ended(self) -> bool:
        """Tell whether the command is over. It is not waited for: until `end` its number stays its own."""
        if os.getpid() == 1:
            self._bury_strangers()
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self, grace_s: float) -> tuple[int | None, int | None]:
        """Return exit code and signal of the command that is over, one of them None, and end what it left behind.

        What is left of its process group gets SIGTERM, after `grace_s` seconds SIGKILL.
        """
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGTERM)
        code = self._process.wait()
        deadline = monotonic() + grace_s
        pause = 0.002
        while self._group_lives():
            if monotonic() >= deadline:
                self.kill()
                break
            sleep(pause)
            pause = min(2 * pause, 0.1)
        return (code, None) if code >= 0 else (None, -code)

    def _group_lives(self) -> bool:
        with suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _bury_strangers(self) -> None:
        """As process 1 of a container: wait for orphans that nobody else waits for."""
        with suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid == self.pid:
                    return
                os.waitpid(ended.si_pid, 0)
