"""Looking at processes."""

import os
import subprocess


def alive(pid: int) -> bool:
    """Tell whether a process still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A killed process that nobody has waited for yet is no longer alive.
    return "Z" not in subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
