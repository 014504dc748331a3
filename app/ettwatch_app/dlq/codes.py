"""Every code that a dead letter can have, and what it means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ettwatch_schemas import CODES

LETTER_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **CODES,
        "no_value": "a record without a value",
        "wrong_key": "a record whose key is not the job of its events",
        "wrong_partition": "a record in a partition where its job does not belong",
        "ahead_of_clock": "an event whose time is more than ten minutes ahead of the worker's clock",
        "late": "an event too far behind the newest of its job, or one that would change what is settled",
        "expired": "an event of a job that was closed long ago and is no longer kept",
        "bad_update": "a message of a worker that the sink cannot read",
        "bad_accepted": "a record of accepted events that the sink cannot read",
    }
)
"""Codes with their meanings: those of the wire format, those of the worker, those of the sink."""
