"""Asking brokers with little time, and with more where the machine stood still for that long."""

from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["patiently"]

T = TypeVar("T")

_HURRIED: Final = ("do not answer in time", "stopped answering")
_MORE_S: Final = (10.0, 60.0)


def patiently(ask: Callable[[float], T], said: Callable[[T], str], seconds: float = 0.5) -> T:
    """Ask with so many seconds of time; again with more, as long as what is said is that there was no answer in time.

    For answers that come at once, but are waited for until the time is up. What is never answered stays unanswered.
    """
    answer = ask(seconds)
    for more in _MORE_S:
        if not any(words in said(answer) for words in _HURRIED):
            break
        answer = ask(more)
    return answer
