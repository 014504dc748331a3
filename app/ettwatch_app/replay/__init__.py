"""From files of events to summaries of jobs, in bounded memory: what `ettwatch replay` does."""

from ettwatch_app.replay.options import Meter, Options, Silent
from ettwatch_app.replay.problems import Problems
from ettwatch_app.replay.run import Outcome, replay_files
from ettwatch_schemas.durations import parse_duration, parse_instant

__all__ = [
    "Meter",
    "Options",
    "Outcome",
    "Problems",
    "Silent",
    "parse_duration",
    "parse_instant",
    "replay_files",
]
