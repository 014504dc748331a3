"""What a flush has to send: gathered at one moment, so that effects and state belong together. Pure, told the time."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ettwatch_faust import outputs
from ettwatch_faust.inbox import Inbox
from ettwatch_faust.lane import Lane
from ettwatch_faust.sender import Out
from ettwatch_faust.shelf import Write
from ettwatch_faust.topics import Names

__all__ = ["Told", "collect", "in_turn"]


class Told(NamedTuple):
    """What is to be sent.

    Attributes:
        outs: Results, events that count and dead letters.
        writes: Changes of the state, by partition.
        publications: How many jobs are told of.
    """

    outs: list[Out]
    writes: dict[int, list[Write]]
    publications: int


def collect(
    names: Names,
    inbox: Inbox,
    lanes: Mapping[int, Lane],
    behind: Mapping[int, bool],
    now_us: int,
    go_on: Callable[[], bool],
    quietly: Callable[[], bool],
) -> Told:
    """Gather what is to be sent.

    Args:
        names: The topics.
        inbox: What was taken in.
        lanes: The jobs, by partition; those first have their turn first.
        behind: Of which partitions more waits to be read.
        now_us: The clock.
        go_on: Asked before each publication; what is left over waits for the next flush.
        quietly: Asked instead before one that could well wait.
    """
    outs: list[Out] = []
    writes: dict[int, list[Write]] = {}
    count = 0
    for partition, lines in inbox.lines.items():
        outs += outputs.accepted(names, partition, lines)
    outs += outputs.letters(names, inbox.letters)
    for partition, lane in lanes.items():
        publications = [] if behind[partition] else lane.tick(now_us, quietly)
        publications += lane.publish(now_us, behind=behind[partition], go_on=go_on, quietly=quietly)
        for publication in publications:
            outs += outputs.publication(names, partition, publication)
        count += len(publications)
        if some := lane.writes(now_us):
            writes[partition] = some
    return Told(outs, writes, count)


def in_turn(lanes: Mapping[int, Lane], turn: int) -> dict[int, Lane]:
    """Return the lanes, with each turn another one first: where time does not suffice for all, each has its share."""
    order = [*lanes]
    at = turn % max(1, len(order))
    return {partition: lanes[partition] for partition in order[at:] + order[:at]}
