"""The port to a channel: how messages leave, and what can go wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ettwatch_monitor.alerts.deliver.matchers import Matcher
from ettwatch_monitor.alerts.deliver.message import Message
from ettwatch_monitor.alerts.deliver.pace import Rate

__all__ = ["Channel", "Plan", "Refused", "Unavailable"]


class Unavailable(Exception):
    """The messages did not arrive, or may not have; they are sent again. One line without secrets.

    Attributes:
        after: For how long the receiver asks not to be called, in microseconds.
    """

    def __init__(self, reason: str, after: int = 0) -> None:
        super().__init__(reason)
        self.after = after


class Refused(Exception):
    """The receiver will never take this message. One line without secrets."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes to a channel, and how. Times are microseconds."""

    mode: Literal["each", "newest"] = "each"
    """`each`: every message once, in order. `newest`: the newest state of each alert, over and over while it fires."""
    match: tuple[Matcher, ...] = ()
    """Only alerts whose labels fulfil all of these."""
    updates: bool = False
    """With mode `each`: also states in which only text and figures changed."""
    mutes: bool = True
    """Whether silences count."""
    rate: Rate | None = None
    batch: int = 1
    """Most messages of one call."""
    resend: int = 60_000_000
    """With mode `newest`: how often a state is sent again."""
    hold: int = 900_000_000
    """With mode `newest`: after how long without a word from here the receiver may call an alert resolved; for as long
    it is told again that one ended."""


class Channel(Protocol):
    """A way to a receiver."""

    @property
    def name(self) -> str:
        """Its name in the settings; the outbox knows it by that."""

    @property
    def plan(self) -> Plan:
        """What goes to it, and how."""

    def send(self, messages: Sequence[Message], now: int) -> None:
        """Send messages; return when the receiver has them.

        Raises Unavailable or Refused; then none of them count as sent.
        """

    def close(self) -> None:
        """Let go of connections. Does nothing the second time; a later `send` makes them anew."""
