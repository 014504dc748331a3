"""How an attempt ended, from what a launcher sees: exit code, signals, kills for memory, word of the ranks."""

import signal
from collections.abc import Collection
from typing import NamedTuple

from ettwatch.causes import CONSEQUENCES
from ettwatch.lastwords import Word
from ettwatch.runfolder import Note

CANCELLING = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
"""Signals to the launcher that end an attempt; those that mean a preemption are told apart by a setting."""

OUT_OF_MEMORY = "the kernel killed a process: the control group was out of memory"


class Seen(NamedTuple):
    """What a launcher saw of an attempt."""

    exit_code: int | None
    """None if a signal ended the command."""
    signal: int | None
    received: Collection[int] = ()
    """Signals that the launcher itself was sent."""
    oom_killed: bool = False
    failed: Note | None = None
    ended: Note | None = None
    said: Word | None = None
    """What an error file or the end of standard error says of a failure."""
    hung: str | None = None
    """Why the launcher itself ended the command: nothing moved."""


class Verdict(NamedTuple):
    """The fields of `attempt_ended`."""

    outcome: str
    cause: str = "unknown"
    exit_code: int | None = None
    signal: int | None = None
    message: str | None = None


def judge(seen: Seen, preempting: Collection[int], preempt_cause: str) -> Verdict:
    """Decide on outcome and cause; docs/run.md has the rules as a table."""
    code, killed_by = seen.exit_code, seen.signal
    if killed_by is None and code is not None and 128 < code < 128 + signal.NSIG:
        killed_by = code - 128  # what a shell makes of a command that a signal ended

    def ended(outcome: str, cause: str | None, message: str | None) -> Verdict:
        return Verdict(outcome, cause or "unknown", code, killed_by, message)

    if code == 0 and seen.ended is not None and seen.ended.outcome == "succeeded":
        return ended("succeeded", None, None)
    if seen.hung is not None and not seen.received:
        return ended("failed", "timeout", seen.hung)
    for number in CANCELLING:
        if number in seen.received:
            name = signal.Signals(number).name
            if number in preempting:
                return ended("preempted", preempt_cause, f"the launcher was sent {name}")
            return ended("cancelled", None, f"the launcher was sent {name}")
    preempted_by = sorted(set(preempting) & set(seen.received))
    if preempted_by:
        return ended("preempted", preempt_cause, f"the launcher was sent {signal.Signals(preempted_by[0]).name}")
    if killed_by == signal.SIGINT:
        return ended("cancelled", None, "the command was sent SIGINT")
    if code == 0 and seen.failed is None:
        note = seen.ended
        return ended(note.outcome, note.cause, note.message) if note else ended("succeeded", None, None)
    return _failure(seen, ended_by=killed_by, code=code)


def failure(failed: Note | None, said: Word | None = None) -> tuple[str | None, str | None]:
    """Return cause and message of a failed attempt: a rank's own, unless that may follow from what was printed."""
    cause, message = (failed.cause, failed.message) if failed else (None, None)
    if said is not None and (
        failed is None or (cause in CONSEQUENCES and (said.first or said.cause not in CONSEQUENCES))
    ):
        return said.cause, said.message
    return cause, message


def _failure(seen: Seen, ended_by: int | None, code: int | None) -> Verdict:
    cause, message = failure(seen.failed, seen.said)
    if seen.oom_killed and (ended_by == signal.SIGKILL or cause in CONSEQUENCES):
        cause, message = "host_memory", OUT_OF_MEMORY
    elif cause is None and code in (126, 127):
        cause = "config"
        message = "the command was not found" if code == 127 else "the command cannot be run"
    if message is None and ended_by is not None:
        message = f"ended by {_signal_name(ended_by)}"
    return Verdict("failed", cause or "unknown", code, ended_by, message)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
