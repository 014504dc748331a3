"""The pure core of ettwatch: events in, a job's timeline out. No I/O and no clock."""

from ettwatch_core.cells import apart, cells, digest_of
from ettwatch_core.codec import StateError, dump, load
from ettwatch_core.journal import grow, tail
from ettwatch_core.pace import CLOSED, Pace, next_look
from ettwatch_core.publish import Publication, Published
from ettwatch_core.rules import CELL, RULES_VERSION, Rules
from ettwatch_core.settle import Settled, settle
from ettwatch_core.snapshot import Snapshot, snapshot
from ettwatch_core.state import JobState, Verdict, apply
from ettwatch_core.summarize import summarize

__all__ = [
    "CELL",
    "CLOSED",
    "RULES_VERSION",
    "JobState",
    "Pace",
    "Publication",
    "Published",
    "Rules",
    "Settled",
    "Snapshot",
    "StateError",
    "Verdict",
    "apart",
    "apply",
    "cells",
    "digest_of",
    "dump",
    "grow",
    "load",
    "next_look",
    "settle",
    "snapshot",
    "summarize",
    "tail",
]
