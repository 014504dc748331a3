"""Numbers and foreign names as text: aligned, readable, harmless."""

import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

from rich.cells import cell_len, set_cell_size

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPLITS = ((86_400, "d", 3_600, "h", 60), (3_600, "h", 60, "m", 1), (60, "m", 1, "s", 1))


def clean(text: str, cells: int = 60) -> str:
    """Make a name that came from outside safe to show: one line, no control characters, at most `cells` wide."""
    shown = "".join(char if _is_plain(char) else f"\\u{ord(char):04x}" for char in text)
    if cell_len(shown) <= cells:
        return shown
    head = (cells - 1) * 2 // 3
    tail = cells - 1 - head
    end = shown
    while cell_len(end) > tail:
        end = end[max(1, (cell_len(end) - tail) // 2) :]
    return f"{set_cell_size(shown, head).rstrip()}…{end}"


def _is_plain(char: str) -> bool:
    # Cf holds the characters that turn the direction of writing; Cs are halves of broken characters.
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co")


def duration(seconds: float) -> str:
    """Write a duration with its two largest units: `2d 3h`, `1h 54m`, `8m 15s`, `15.0 s`, `250 ms`."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else f"{seconds * 1e6:.0f} us"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, part, small, grain in _SPLITS:
        # What rounds up to a whole day in hours and minutes is shown as a day.
        if round(whole / grain) * grain >= size:
            # Round to the smaller unit, which may carry into the larger one.
            parts = round(whole / part)
            big, rest = divmod(parts, size // part)
            return f"{big}{unit} {rest:02d}{small}"
    raise AssertionError("unreachable: at least 59.95 s round to a minute")


class GpuTime(NamedTuple):
    """In which unit, and with how many decimals, the amounts of GPU time of one sentence or column are written."""

    long: str
    """`GPU-hours`, `GPU-minutes` or `GPU-seconds`."""
    short: str
    """`GPU-h`, `GPU-min` or `GPU-s`."""
    sign: str
    """`h`, `min` or `s`, where it is said otherwise that it is GPU time."""
    size_s: int
    """Seconds of one such unit."""
    decimals: int

    @classmethod
    def of(cls, gpu_seconds: Iterable[float]) -> Self:
        """Return what suits the largest of some amounts: hours, and where these say nothing minutes or seconds."""
        largest = max(map(abs, gpu_seconds), default=0.0)
        if largest == 0 or largest >= 3_600:
            return cls("GPU-hours", "GPU-h", "h", 3_600, 2 if largest < 360_000 else 1 if largest < 36_000_000 else 0)
        if largest >= 59.95:  # what rounds up to a minute is shown as one
            return cls("GPU-minutes", "GPU-min", "min", 60, 1)
        return cls("GPU-seconds", "GPU-s", "s", 1, 1 if largest >= 0.95 else 3)

    def write(self, gpu_seconds: float) -> str:
        """Write GPU-seconds in this unit, without its name: `1,234.5`."""
        text = f"{gpu_seconds / self.size_s:,.{self.decimals}f}"
        return text.removeprefix("-") if not text.strip("-0.,") else text


def percent(part: float, whole: float) -> str:
    """Write a share as `45.4 %`; `-` of nothing."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else "-"


def share(value: float | None) -> str:
    """Write a percentage that may be unknown."""
    return "-" if value is None else f"{value:.1f} %"


def moment(us: int) -> str:
    """Write microseconds since the epoch as a UTC time to the second."""
    return (_EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%d %H:%M:%S UTC")


def count(number: int, one: str, many: str | None = None) -> str:
    """Write `1 attempt` or `2 attempts`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
