"""Which windows there are, when they end, and how far back a time still matters. Times are whole minutes (UTC)."""

from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from ettwatch_schemas.durations import parse_duration

__all__ = ["MINUTE_US", "Size", "Sizes", "SizesError"]

MINUTE_US: Final = 60_000_000
HOUR: Final = 60
"""Minutes."""

_FINE: Final = 3 * HOUR
_MIDDLE: Final = 48 * HOUR
_LONGEST: Final = 31 * 24 * HOUR
_MOST: Final = 5


class SizesError(ValueError):
    """Windows that cannot be. One line: which, why, and what to do."""


class Size(NamedTuple):
    """Windows of one length."""

    name: str
    """As it was given, like `24h`."""
    length: int
    """Minutes."""
    step: int
    """They end on multiples of so many minutes: 1, 5 or 60."""

    def first_end(self, minute: int) -> int:
        """Return the first end at or after a minute."""
        return -(-minute // self.step) * self.step

    def last_end(self, minute: int) -> int:
        """Return the last end at or before a minute."""
        return minute // self.step * self.step


@dataclass(frozen=True, slots=True)
class Sizes:
    """All windows.

    Attributes:
        all: Each length once.
        correct: For how many minutes after its end a window is corrected.
    """

    all: tuple[Size, ...]
    correct: int

    @classmethod
    def parse(cls, lengths: str = "1h,24h,7d", correct: str = "24h") -> Self:
        """Read lengths with commas between them, and how long windows are corrected.

        Windows of up to 3 h end on every minute, those of up to 48 h on every fifth, longer ones on every hour.

        Raises:
            SizesError: A length is no duration, is told twice, or does not suit its step.
        """
        texts = [text.strip() for text in lengths.split(",") if text.strip()]
        found = tuple(_size(text) for text in texts)
        if not 0 < len(found) <= _MOST or len({size.length for size in found}) < len(found):
            raise SizesError(f"{lengths!r}: give one to {_MOST} different lengths, like 1h,24h,7d")
        kept = _minutes(correct)
        if not HOUR <= kept <= _LONGEST or kept % HOUR:
            raise SizesError(f"{correct!r}: windows are corrected for whole hours, from 1h to 31d")
        return cls(found, kept)

    @property
    def layout(self) -> str:
        """A name of all of it: sums that were kept for other windows cannot be used."""
        return "+".join(f"{size.length}/{size.step}" for size in self.all) + f"~{self.correct}"

    def resolution(self, hour: int, now: int) -> int | None:
        """Return how many minutes one bucket of an hour has; None: the hour is in no window any more.

        Args:
            hour: Number of the hour since the Unix epoch.
            now: The clock, in minutes since the Unix epoch.
        """
        oldest = now - self.correct
        end = (hour + 1) * HOUR
        steps = [size.step for size in self.all if end > oldest - size.length]
        return min(steps, default=None)


def _size(text: str) -> Size:
    length = _minutes(text)
    step = 1 if length <= _FINE else 5 if length <= _MIDDLE else HOUR
    if not 5 <= length <= _LONGEST or length % step:
        raise SizesError(f"{text!r}: a window has from 5m to 31d, in steps of 5m from 3h on and of 1h from 48h on")
    return Size(text, length, step)


def _minutes(text: str) -> int:
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise SizesError(str(error)) from None
    if not found or found % MINUTE_US:
        raise SizesError(f"{text!r}: write a duration of whole minutes, like 1h or 7d")
    return found // MINUTE_US
