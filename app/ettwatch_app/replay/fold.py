"""Summaries of everything in a spill, bucket by bucket: memory for the jobs of one bucket at a time."""

from collections.abc import Iterable

from ettwatch_app.replay.options import Options
from ettwatch_app.replay.partition import MAX_LEVEL, partition
from ettwatch_app.replay.problems import Problems
from ettwatch_app.replay.results import Results
from ettwatch_app.replay.spill import BUCKETS, Block, Spill
from ettwatch_app.replay.tally import Tally, decoded


def fold(spill: Spill, level: int, options: Options, problems: Problems, results: Results) -> int:
    """Fold all buckets into `results`; return the number of accepted events."""
    accepted = 0
    for bucket in range(BUCKETS):
        size = spill.sizes[bucket]
        if size:
            blocks = spill.blocks(bucket)
            if size > options.memory and level < MAX_LEVEL and spill.mixed[bucket]:
                accepted += _split(blocks, level + 1, options, problems, results)
            else:
                accepted += _fold(blocks, options, problems, results)
        if level == 0:
            options.meter.advance(size)
    return accepted


def _split(blocks: Iterable[Block], level: int, options: Options, problems: Problems, results: Results) -> int:
    """Fold a bucket that is too large at once by putting its jobs into smaller ones."""
    spill = Spill(options.memory)
    try:
        for places, lines in blocks:
            partition(spill, places, lines, level, problems)
        return fold(spill, level, options, problems, results)
    finally:
        spill.close()


def _fold(blocks: Iterable[Block], options: Options, problems: Problems, results: Results) -> int:
    tally = Tally(options, problems)
    for places, lines in blocks:
        for place, line in zip(places, lines, strict=True):
            for event in decoded(place, line, problems):
                tally.add(place, event)
    for job, place in tally.first.items():
        results.add(place, tally.line_of(job, []))
    return tally.accepted
