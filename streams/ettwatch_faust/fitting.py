"""Dead letters that their topic takes, however large a record was. Pure."""

from dataclasses import replace
from typing import Final

from ettwatch_schemas import DeadLetter

__all__ = ["fitting"]

_MOST_VALUE: Final = 9 << 20
_MOST_KEY: Final = 64 << 10
"""Bytes of a value and of a key that their dead letter keeps whole: its topic takes 10 MiB, however they are packed."""

_KEPT: Final = 1 << 20
"""Bytes that are kept of a longer value."""


def fitting(letter: DeadLetter) -> DeadLetter:
    """Return a dead letter that its topic takes.

    Packed, a record of any size gets past the limit of a topic, and may be larger where it is packed anew: the brokers
    would refuse its letter for ever, and nothing after it would be read. So it keeps the beginning of what could never
    be a message or a job.
    """
    value, key, kept = letter.value, letter.key, []
    if value is not None and len(value) > _MOST_VALUE:
        kept.append(f"the first {_KEPT} of the {len(value)} bytes of its value")
        value = value[:_KEPT]
    if key is not None and len(key) > _MOST_KEY:
        kept.append(f"the first {_MOST_KEY} of the {len(key)} bytes of its key")
        key = key[:_MOST_KEY]
    if not kept:
        return letter
    return replace(letter, value=value, key=key, reason=f"{letter.reason[:3_000]}; kept: {' and '.join(kept)}")
