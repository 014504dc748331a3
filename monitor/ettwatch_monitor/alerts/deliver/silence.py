"""Silences: alerts with certain labels are not told for a time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ettwatch_monitor.alerts.deliver.matchers import Matcher, all_match

__all__ = ["Silence", "muted_until"]


@dataclass(frozen=True, slots=True)
class Silence:
    """Keeps alerts from being told. Times are microseconds since the Unix epoch.

    Raises ValueError where there is no matcher, or it ends before it starts.
    """

    matchers: tuple[Matcher, ...]
    """All have to match."""
    ends_at: int
    starts_at: int = 0
    comment: str = ""
    number: int | None = None
    """Its number in the outbox; None for one of the settings."""

    def __post_init__(self) -> None:
        if not self.matchers:
            raise ValueError("a silence needs a matcher")
        if self.ends_at <= self.starts_at:
            raise ValueError("a silence has to end after it starts")


def muted_until(silences: Iterable[Silence], labels: Mapping[str, str], now: int) -> int | None:
    """Return until when alerts with these labels are not told (µs); None where they are told."""
    ends = [s.ends_at for s in silences if s.starts_at <= now < s.ends_at and all_match(s.matchers, labels)]
    return max(ends, default=None)
