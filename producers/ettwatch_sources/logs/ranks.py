"""Attempt and rank out of the name of a log file, where torchrun and others put them."""

import re
from typing import Final, NamedTuple

_TORCHRUN: Final = re.compile(r"attempt_(\d{1,6})/(\d{1,6})/std(?:out|err)\.log")
_RANK: Final = re.compile(r"(?:^|[^a-z])rank[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)


class Place(NamedTuple):
    """Where a file says that it was written."""

    attempt: int
    rank: int


def place_in(name: str) -> Place:
    """Return attempt and rank of `…/attempt_1/0/stdout.log` and `…rank_3….log`; 0 where the name does not say."""
    found = _TORCHRUN.search(name)
    if found:
        return Place(int(found[1]), int(found[2]))
    rank = _RANK.search(name)
    return Place(0, int(rank[1]) if rank else 0)
