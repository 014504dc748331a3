"""The settings of the attribution rules, and their version."""

from dataclasses import dataclass
from typing import Final

__all__ = ["CELL", "RULES_VERSION", "Rules"]

RULES_VERSION: Final = "1"
"""Stands in every summary. It rises whenever the same events could give other numbers."""

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

CELL: Final = HOUR
"""Length of the cells (µs, whole hours UTC) in which settled segments are handed out."""

HEARD_WITHIN: Final = 60 * SECOND
"""A rank may be heard for positions if its progress begins within this time of the attempt's first."""

UNDECLARED_HANG: Final = 3_600 * SECOND
"""Hang limit where the producer declared no ``report_every_s``."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of the fold. All are microseconds.

    Attributes:
        lateness: An event further than this behind the newest of its job is refused. ``None``: nothing is too
            late, and nothing is ever settled (for files, where the whole job is at hand).
        hang_after: A gap without an advance is a hang beyond this, or beyond three times the declared
            ``report_every_s``, whichever is larger.
        silent_after: A job with an open attempt is shown as ``silent`` when it has not spoken for this long.
        lost_after: ... and is closed as ``lost`` after this.
        retry_after: A job that waits for a retry is closed as ``failed`` after this.
    """

    lateness: int | None = 6 * HOUR
    hang_after: int = 300 * SECOND
    silent_after: int = 10 * MINUTE
    lost_after: int = 6 * HOUR
    retry_after: int = 7 * DAY
