"""How far to trust a prediction."""

from typing import Final

from ettwatch_monitor.advice.remedies import Confidence, Remedy

_ENOUGH: Final = 20
"""From so many cases on, chance matters little."""
_FEW: Final = 5
_OFF_PCT: Final = 5


def trust(remedy: Remedy, times: int, off: float) -> tuple[Confidence, str]:
    """Return how far to trust a prediction, and why: less where there are few cases, or where replays are off.

    Args:
        remedy: What was tried.
        times: How often what it cures was seen.
        off: By how many percent laying the jobs out anew is off by itself.
    """
    if times < _FEW:
        return "low", f"{remedy.why}; {_few(times)}"
    if off > _OFF_PCT:
        return "low", f"{remedy.why}; replaying these jobs without any change is {off:.0f} % off"
    if times < _ENOUGH and remedy.confidence == "high":
        return "medium", f"{remedy.why}; {_few(times)}"
    return remedy.confidence, remedy.why


def _few(times: int) -> str:
    return "only 1 case was seen" if times == 1 else f"only {times} cases were seen"
