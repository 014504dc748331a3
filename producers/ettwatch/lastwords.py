"""Why a command failed, from the last that it printed or left in an error file: for trainers that do not record."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ettwatch.causes import CONSEQUENCES, cause_of_name
from ettwatch.wire import tidy_text

_MEMORY: Final = (
    (re.compile(r"(?:torch\.)?(?:cuda\.)?OutOfMemoryError\b.*|\b(?:CUDA|HIP|XPU) out of memory.*"), "gpu_memory"),
    (re.compile(r"RESOURCE_EXHAUSTED: .*[Oo]ut of memory.*"), "gpu_memory"),
    (re.compile(r"[Dd]etected \d+ oom.kill event.*|\boom-kill\b.*|Out Of Memory\b.*"), "host_memory"),
    (re.compile(r"DataLoader worker \(pid.*\) is killed by signal: Bus error.*"), "host_memory"),
)
_TRACEBACK: Final = "Traceback (most recent call last):"
_PREFIX: Final = re.compile(r"^(?:\[?(?:rank|default)?\d+\]?:\s?)?")
_RAISED: Final = re.compile(r"([A-Za-z_][\w.]*)(?::\s?(.*))?$")
_OF_AN_AGENT: Final = ("ChildFailedError", "SignalException", "ProcessRaisedException", "ProcessExitedException")
"""What is raised about a rank by who started it."""


_ROOT: Final = re.compile(
    r"Root Cause \(first observed failure\).*?rank\s*: (\d+).*?traceback\s*: Signal \d+ \((SIG\w+)\) received",
    re.DOTALL,
)
"""What an agent of torchelastic prints of a rank that was killed."""


class Word(NamedTuple):
    """A cause of the wire format, and the message that says so."""

    cause: str
    message: str
    first: bool = False
    """It is known to be of the rank that failed first."""


def in_text(text: str) -> Word | None:
    """Return what the end of standard error says: of memory, else by the exception that ended a process."""
    for pattern, cause in _MEMORY:
        found = pattern.search(text)
        if found is not None:
            return Word(cause, tidy_text(found[0].strip()))
    killed = _ROOT.search(text)
    if killed is not None:
        return Word("unknown", f"rank {killed[1]} was ended by {killed[2]}", first=True)
    words = list(_raised(text.splitlines()))
    by_itself = [word for word in words if word.cause not in CONSEQUENCES]
    return next(reversed(by_itself or words), None)


def _raised(lines: list[str]) -> Iterator[Word]:
    """Yield the exception at the end of each traceback."""
    inside = False
    for line in lines:
        bare = _PREFIX.sub("", line)
        if bare.startswith(_TRACEBACK):
            inside = True
        elif inside and bare and not bare[0].isspace():
            found = _RAISED.match(bare)
            name = found[1].rpartition(".")[2] if found else ""
            if found and name not in _OF_AN_AGENT:
                yield Word(cause_of_name(name, found[2] or ""), tidy_text(f"{name}: {found[2]}" if found[2] else name))
            inside = False


def in_error_file(path: str) -> Word | None:
    """Return what an error file of torchelastic says, of the rank that failed first; None if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            told = json.load(file)["message"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    text = told.get("message") if isinstance(told, dict) else told
    if not isinstance(text, str) or not text.strip():
        return None
    name, _, rest = text.strip().partition(":")
    if not name.isidentifier():
        return Word("unknown", tidy_text(text.strip()), first=True)
    return Word(cause_of_name(name, rest.strip()), tidy_text(text.strip()), first=True)
