"""Failures that a job would meet if it needed longer than it took: drawn at the rate at which jobs of its kind fail.

Who leaves them out tells every gain too large: what makes some jobs shorter makes others longer, by luck.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from math import log
from typing import Final, NamedTuple

from ettwatch_monitor.advice.life import Attempt, Life
from ettwatch_schemas import JobSummary

DRAWS: Final = 8
"""So often a job that needs longer is drawn; what comes of it is the mean."""
MOST: Final = 20
"""After so many further failures a job fails no more."""
_SUMS: Final = (
    "e2e_s",
    "effective_s",
    "recovery_s",
    "unsaved_s",
    "gpu_effective_s",
    "gpu_e2e_s",
    "gpu_held_s",
)
_MAPS: Final = ("components", "stages", "hidden_s")


class Recovery(NamedTuple):
    """A failure that was seen, and what came after it.

    Attributes:
        life: Whose it is.
        failed: The attempt that failed in its loop.
        after: The attempts that followed, up to one that trained again.
    """

    life: Life
    failed: Attempt
    after: tuple[Attempt, ...]


def recoveries(life: Life) -> list[Recovery]:
    """Return the failures of a job after which it trained again."""
    found: list[Recovery] = []
    failed: Attempt | None = None
    between: list[Attempt] = []
    for attempt in life.attempts:
        trained = attempt.loop is not None and attempt.startup.loop_start is not None
        if failed is not None:
            between.append(attempt)
            if trained:
                found.append(Recovery(life, failed, tuple(between)))
        if trained:
            failed, between = attempt if attempt.failed else None, []
    return found


class Draw:
    """One course of a job from where nobody saw it any more.

    Args:
        number: Of `DRAWS`.
        mtbf: Time in loops (µs) between two failures.
        known: What failures of its kind looked like; at least one.
    """

    def __init__(self, life: Life, number: int, mtbf: int, known: Sequence[Recovery]) -> None:
        self._job, self._number, self._mtbf, self._known = life.job, number, mtbf, known

    def budget(self, failures: int) -> int | None:
        """How long (µs) its loop runs, after so many further failures, until the next; None: to its end."""
        if failures >= MOST:
            return None
        # The draws of a job share the first budget out among them: none but the shortest are short.
        luck = self._fraction("budget", failures, self._number if failures else "")
        if failures == 0:
            luck = (self._number + luck) / DRAWS
        return round(-log(1 - luck) * self._mtbf)

    def recovery(self, failures: int) -> Recovery:
        """What the next failure looks like."""
        return self._known[int(self._fraction("which", failures, self._number) * len(self._known))]

    def _fraction(self, *parts: object) -> float:
        text = "/".join(map(str, (self._job, *parts)))
        return (int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 11) / 2**53


def mean(summaries: Sequence[JobSummary]) -> JobSummary:
    """Return the first of several courses of one job, with the means of their sums."""
    first, count = summaries[0], len(summaries)
    told: dict[str, object] = {name: sum(getattr(each, name) for each in summaries) / count for name in _SUMS}
    for name in _MAPS:
        names = _names(getattr(each, name) for each in summaries)
        told[name] = {key: sum(getattr(each, name).get(key, 0.0) for each in summaries) / count for key in names}
    told["t1"] = sum(each.t1 for each in summaries) // count
    return first.model_copy(update=told)


def _names(maps: Iterable[dict[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for each in maps for name in each))
