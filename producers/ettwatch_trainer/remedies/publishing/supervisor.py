"""The publisher's outer process: begins the work again if it is killed. Needs no torch, so little can kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ettwatch_trainer.remedies.publishing import request as requests
from ettwatch_trainer.remedies.publishing.request import Status

MODULE = "ettwatch_trainer.remedies.publishing"
DONE, AGAIN, FAILED, BUSY = 0, 1, 3, 75


def supervise(path: Path, *, pause_s: float = 1.0) -> int:
    """Have one request published; the exit code. Each try is a process, `pause_s` after the last, then twice that."""
    request = requests.read(path)
    known = os.pathsep.join([*request.search, os.environ.get("PYTHONPATH", "")])
    reason = ""
    for number in range(request.tries):
        if number:
            time.sleep(pause_s * 2 ** (number - 1))
        code = subprocess.call(
            [sys.executable, "-m", MODULE, "--work", str(path)], env={**os.environ, "PYTHONPATH": known}
        )
        if code in (DONE, FAILED, BUSY):
            return code
        reason = _reason(code)
    requests.tell(
        path, Status("failed", requests.status(path).tries, None, f"{request.tries} tries: the last {reason}")
    )
    return FAILED


def _reason(code: int) -> str:
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}; see the log beside the request"
