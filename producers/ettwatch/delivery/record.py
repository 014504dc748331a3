"""What is sent, and why it may not be taken."""

from typing import NamedTuple


class Undelivered(Exception):
    """The brokers did not take the records; they may do so later. One line that says why; no secret is in it."""


class Record(NamedTuple):
    """What becomes one record of the topic: events of one job."""

    key: bytes
    lines: list[bytes]

    @property
    def value(self) -> bytes:
        """The events as a JSON array."""
        return b"[" + b",".join(self.lines) + b"]"
