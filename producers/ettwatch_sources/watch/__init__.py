"""Watchers of schedulers: facts about jobs in, events out, once each."""

from ettwatch_sources.watch.facts import Ended, Fact, Finished, Gone, Hint, Started, Submitted
from ettwatch_sources.watch.loop import Poller, follow
from ettwatch_sources.watch.tracker import Tracker

__all__ = [
    "Ended",
    "Fact",
    "Finished",
    "Gone",
    "Hint",
    "Poller",
    "Started",
    "Submitted",
    "Tracker",
    "follow",
]
