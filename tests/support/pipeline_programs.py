"""`ettwatch` commands as processes of their own, to be killed, stopped and continued; they end with the test run."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from support.kafka_native import Reaper
from support.ports import free_port

__all__ = ["Program", "ProgramError", "until"]

COMMAND: Final = Path(sys.executable).with_name("ettwatch")
_READY_S: Final = 90
_STOP_S: Final = 60
_ANSWER_S: Final = 20
_TAIL_LINES: Final = 40


class ProgramError(AssertionError):
    """A program did not do what it was started for."""


def until(what: str, true: Callable[[], bool], seconds: float, every_s: float = 0.1) -> None:
    """Wait until something is true. Raises ProgramError when that takes longer than `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise ProgramError(f"not within {seconds:.0f} s: {what}")
        time.sleep(every_s)


class Program:
    """One command, which may be started again and again; what it says goes to one log file.

    Attributes:
        name: For messages, and of the log file.
        web: HOST:PORT of its probe.
        log: The file with its standard output and standard error.
        pid: Of its latest process; 0 before the first start.
    """

    def __init__(
        self, name: str, folder: Path, arguments: Sequence[str], environment: Mapping[str, str], reaper: Reaper
    ) -> None:
        self.name = name
        self.web = f"127.0.0.1:{free_port()}"
        self.log = folder / f"{name}.log"
        self.pid = 0
        self._arguments = [*arguments, "--web", self.web]
        self._environment = dict(environment)
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True, **environment: str) -> None:
        """Start it, with further variables; return when it says that it is ready."""
        assert self._process is None, f"{self.name} runs already"
        with self.log.open("ab") as log:
            log.write(f"--- started at {time.strftime('%H:%M:%S')}\n".encode())
            log.flush()
            self._process = subprocess.Popen(
                [str(COMMAND), *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_clean(os.environ) | self._environment | environment,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._reaper.watch(self.pid)
        if ready:
            self.wait_ready()

    def wait_ready(self, seconds: float = _READY_S) -> None:
        """Wait until its /readyz says so. Raises ProgramError, with the end of its log."""
        try:
            until(f"{self.name} is ready", lambda: self.running() and self.get("/readyz")[0] == 200, seconds)
        except ProgramError as error:
            raise ProgramError(f"{error}\n{self.get('/readyz')}\n{self.tail()}") from None

    def running(self) -> bool:
        """Tell that it runs. Raises ProgramError where it ended by itself."""
        assert self._process is not None, f"{self.name} was not started"
        code = self._process.poll()
        if code is not None:
            raise ProgramError(f"{self.name} ended by itself with exit code {code}\n{self.tail()}")
        return True

    def get(self, path: str) -> tuple[int, str]:
        """Ask its probe; 0 and why where it does not answer."""
        connection = http.client.HTTPConnection(self.web, timeout=_ANSWER_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Return its metrics, by name with labels; none where it does not answer."""
        _, text = self.get("/metrics")
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {line[0]: float(line[1]) for line in lines if len(line) == 2}

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._signal(signal.SIGKILL)
        self._over()

    def freeze(self) -> None:
        """Stop it where it stands (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def stop(self, seconds: float = _STOP_S) -> int:
        """End it in good order (SIGTERM); return its exit code. Raises ProgramError where it does not end."""
        assert self._process is not None
        self._signal(signal.SIGTERM)
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGABRT)
            self.kill()
            raise ProgramError(f"{self.name} did not stop within {seconds:.0f} s\n{self.tail()}") from None
        self._over()
        return code

    def close(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            self.kill()

    @property
    def started(self) -> bool:
        """Whether it was started, and not ended by us."""
        return self._process is not None

    def resident(self) -> int:
        """Return the bytes of memory that its process holds."""
        fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_s(self) -> float:
        """Return the seconds of processor time that its process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """Return the end of its log."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, f"{self.name} was not started"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _over(self) -> None:
        assert self._process is not None
        self._process.wait()
        self._reaper.forget(self._process.pid)
        self._process = None


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what would be taken for settings."""
    return {name: value for name, value in environment.items() if not name.startswith("ETTWATCH_")}
