"""Whether an attempt hangs: decided from where its loops stand and from the time, which is told."""

from collections.abc import Mapping
from typing import NamedTuple

from ettwatch.moving import Place


class Patience(NamedTuple):
    """How long nothing may move, in seconds; None: for ever."""

    hang_after_s: float | None = None
    """In the loop, from one advance of the position to the next."""
    start_within_s: float | None = None
    """From the start of the attempt to its first step."""


class HangWatch:
    """Watches one attempt. Pure: it reads nothing and knows no clock."""

    def __init__(self, patience: Patience, now_s: float) -> None:
        self._patience = patience
        self._since = now_s
        self._places: Mapping[str, Place] = {}

    def look(self, places: Mapping[str, Place], now_s: float) -> str | None:
        """Return what hangs, in words, or None. `places`: where the loops stand, by rank."""
        if any(place != self._places.get(name) for name, place in places.items()):
            # The first word comes with the first step: from then on it is the loop that must move.
            self._places = dict(places)
            self._since = now_s
            return None
        still_s = now_s - self._since
        if not self._places:
            limit = self._patience.start_within_s
            if limit is not None and still_s >= limit:
                return f"no step within {limit:g} s of the start"
            return None
        training = [place for place in self._places.values() if place.state == "training"]
        limit = self._patience.hang_after_s
        if training and limit is not None and still_s >= limit:
            at = max(training, key=lambda place: place.position)
            return f"no progress for {limit:g} s after step {at.step} (position {at.position})"
        return None
