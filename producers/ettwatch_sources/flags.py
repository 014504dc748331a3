"""What a source could not know: the codes that events carry with them, and what each means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "no_submit": "when the job was submitted is not told: its time begins with the first event",
        "no_eligible": "when the job could have run is not told: all waiting counts as scheduling",
        "no_start": "when hardware was allocated is not told: the attempt begins with its first event",
        "no_end": "how and when the last attempt ended is not told",
        "no_outcome": "an attempt ended, but not whether it succeeded; it counts as cancelled",
        "no_cause": "why an attempt failed is not told",
        "no_gpus": "how many GPUs were held is not told",
        "no_positions": "no progress of training is told: nothing can count as effective",
        "no_loop_start": "when the loop began is not told: it begins with the first progress",
        "no_phases": "what start-up was spent on is not told",
        "no_data_wait": "waiting for data is not told: it counts as training",
        "no_attempts": "restarts are not told: what looks like one attempt may be several",
        "counted_attempts": "attempts have no numbers there: they are counted as they come",
        "position_is_step": "positions are steps, because the samples of a step are not told",
        "position_is_epoch": "positions are millionths of an epoch, because samples are not told",
        "position_is_saved_step": "positions are the steps of saved checkpoints, because no others are told",
        "save_length": "how long saving a checkpoint blocked training is not told",
        "whole_seconds": "times are whole seconds",
        "zone_assumed": "times have no zone and none was given: they were read as UTC",
        "zone_given": "times have no zone: they were read in the zone that was given",
        "zone_ambiguous": "a local time that a clock change makes occur twice: the earlier one was taken",
        "zone_gap": "a local time that a clock change leaves out",
        "year_assumed": "times have no year: that of the nearest time with one was taken",
        "zero_time": "a time is zero: the line says nothing of when",
        "no_time": "a line has no time of its own: that of the line before it was not taken, the line was left out",
        "out_of_order": "times of the lines do not rise",
        "invalid_utf8": "bytes that are not UTF-8 stand as replacement characters",
        "truncated": "the last line is cut off",
        "several_ranks": "several ranks speak in one file",
        "unknown_word": "a state or reason that is not known here; it is kept as it stands",
        "id_recycled": "the scheduler gave one id to two jobs: the later one's name has its time of submission",
        "missed": "the watcher was away or a change came too fast: attempts before this one were not seen",
    }
)
"""Code of a flag to its meaning. Codes are stable: scripts may rely on them."""
