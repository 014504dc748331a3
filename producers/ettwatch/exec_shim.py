"""Run by the launcher as a script of its own: ask the kernel to end this process with the launcher, then become CMD.

Arguments: the launcher's process id, then the command. It uses nothing but the standard library.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Become the command; return 126 or 127, as a shell would, if that cannot be."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked for as long as this has taken
    launcher, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
        except Exception as error:  # without it the command runs all the same
            _say(f"the command may outlive this launcher: {error}")
    if os.getppid() != launcher:
        return 128 + signal.SIGTERM  # it ended before the kernel was asked
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays so in the command
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        _say(f"{command[0]}: command not found")
        return 127
    except OSError as error:
        _say(f"{command[0]}: {error.strerror}")
        return 126


def _say(text: str) -> None:
    sys.stderr.write(f"ettwatch run: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
