"""What a remedy is for one team, in words and with its numbers."""

from collections.abc import Sequence

from ettwatch_monitor.advice.evidence import counted, intervals, slow_hosts
from ettwatch_monitor.advice.fleet import Fleet
from ettwatch_monitor.advice.life import Life
from ettwatch_monitor.advice.remedies import Remedy

_NAMED = 3


def title_of(remedy: Remedy, fleet: Fleet, lives: Sequence[Life]) -> str:
    """Return the title of a remedy for some jobs."""
    if remedy.name == "save_interval":
        return _saves(fleet, lives) or remedy.title
    if remedy.name == "replace_stragglers":
        return _hosts(fleet, lives) or remedy.title
    return remedy.title


def _saves(fleet: Fleet, lives: Sequence[Life]) -> str | None:
    every = sorted(best for _, _, best in intervals(fleet, lives))
    if not every:
        return None
    least, most = _minutes(every[0]), _minutes(every[-1])
    if least == most:
        return f"Save checkpoints about every {least} min"
    return f"Save checkpoints about every {least} to {most} min, as the model needs"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f}" if seconds >= 150 else f"{seconds / 60:.1f}".removesuffix(".0")


def _hosts(fleet: Fleet, lives: Sequence[Life]) -> str | None:
    slow = slow_hosts(fleet, lives)
    if not slow:
        return None
    named = ", ".join(each.host for each in slow[:_NAMED])
    more = "" if len(slow) <= _NAMED else f" and {len(slow) - _NAMED} more"
    return f"Take {counted(len(slow), 'slow host')} out: {named}{more}"
