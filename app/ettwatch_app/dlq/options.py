"""The options that all commands on dead letters take, and what they say."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ettwatch_app.dlq.letters import Wanted
from ettwatch_schemas.durations import parse_duration, parse_instant

if TYPE_CHECKING:
    from ettwatch_faust import Access, TopicSpec

Command = Callable[..., Any]

_OPTIONS = (
    click.option("--bootstrap", metavar="HOST:PORT,…", help="The brokers.  [default: $ETTWATCH_KAFKA]"),
    click.option(
        "--prefix", help="What the names of the topics begin with.  [default: $ETTWATCH_TOPIC_PREFIX, else ett]"
    ),
    click.option("--code", multiple=True, help="Only letters with this code; may be given several times."),
    click.option("--job", multiple=True, help="Only letters of this job; may be given several times."),
    click.option("--topic", multiple=True, help="Only what was read from this topic; may be given several times."),
    click.option(
        "--since", metavar="TIME", help="Only what was refused then or later: RFC 3339, or 2h for two hours ago."
    ),
    click.option("--until", metavar="TIME", help="Only what was refused before then."),
    click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N letters, the oldest."),
    click.option(
        "--timeout",
        type=click.FloatRange(0.1, 600),
        default=10.0,
        show_default=True,
        help="Seconds to wait for the brokers.",
    ),
)


def letter_options(command: Command) -> Command:
    """Add the options that `read_choice` reads."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


@dataclass(frozen=True, slots=True)
class Choice:
    """What the options say.

    Attributes:
        access: How the brokers are reached.
        plan: The topics under the prefix.
        events: Name of the topic of events.
        letters: Name of the topic of dead letters.
        outputs: Names of the topics that the sink reads.
        wanted: Which letters.
        limit: How many letters at most; None for all.
        seconds: To wait for each answer of the brokers.
    """

    access: "Access"
    plan: Sequence["TopicSpec"]
    events: str
    letters: str
    outputs: frozenset[str]
    wanted: Wanted
    limit: int | None
    seconds: float

    @property
    def everything(self) -> bool:
        """Whether nothing narrows the choice."""
        return self.wanted.everything and self.limit is None


def read_choice(told: Mapping[str, Any]) -> Choice:
    """Read the options, and the environment where they say nothing. Raises ValueError, BrokersError."""
    import ettwatch_faust as side

    usual = side.TopicSettings.read(os.environ)
    # Any number of partitions will do here.
    settings = side.TopicSettings(usual.prefix if told["prefix"] is None else told["prefix"], 1, 1)
    called = side.names(settings.prefix)
    now = time.time_ns() // 1000
    return Choice(
        access=side.Access.read(os.environ, told["bootstrap"]),
        plan=side.plan(settings),
        events=called.events,
        letters=called.dlq,
        outputs=frozenset(called[1:]) - {called.events, called.dlq, called.state},
        wanted=Wanted(
            frozenset(told["code"]),
            frozenset(told["job"]),
            frozenset(told["topic"]),
            _instant("--since", told["since"], now),
            _instant("--until", told["until"], now),
        ),
        limit=told["limit"],
        seconds=told["timeout"],
    )


def _instant(option: str, text: str | None, now: int) -> int | None:
    """Read a time, or how long ago it was. Raises ValueError."""
    if text is None:
        return None
    try:
        return now - parse_duration(text) if re.fullmatch(r"\s*([0-9.]+[a-z]+)+\s*", text) else parse_instant(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}; or 2h for two hours ago") from None
