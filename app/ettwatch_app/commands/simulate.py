"""`ettwatch simulate`: the events of a made-up fleet, to a file, a folder or Kafka."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import Refused, ends_cleanly

if TYPE_CHECKING:
    from ettwatch_sim.life import Message, Rate, Scenario

_KAFKA: Final = "kafka"
_SEVERAL: Final = 2_000
"""How many events lie between two looks at the progress."""


class Sink(Protocol):
    """Where messages go."""

    def put(self, message: "Message") -> None:
        """Take a message."""


class _Rated(click.ParamType):
    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Rate":
        from ettwatch_sim.life import Rate

        try:
            return value if isinstance(value, Rate) else Rate.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option(
    "--profile",
    default="fleet",
    show_default=True,
    metavar="NAME|FILE",
    help="The fleet: a YAML file, `fleet`, or the name of a model of which there is nothing else.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Equal seeds give equal fleets.")
@click.option("--days", type=float, help="For how many days jobs are submitted.  [default: as in the profile]")
@click.option("--jobs", type=click.IntRange(1), help="At most so many jobs.  [default: no limit]")
@click.option("--begin", metavar="TIME", help="When it begins: ISO 8601, or `now`.  [default: as in the profile]")
@click.option("--remedies", metavar="NAMES", help="`all`, `none`, or names with commas.  [default: as in the profile]")
@click.option("--to", "target", default="-", metavar="FILE|DIR|kafka", help="Where to.  [default: standard output]")
@click.option("--rate", type=_Rated(), default="max", show_default=True, help="max, 60x (times life), or 5000/s.")
@click.option("--truth", type=click.Path(path_type=Path, dir_okay=False), help="Write the ground truth to this file.")
@click.option("--bootstrap", metavar="HOST:PORT,…", help="The brokers.  [default: $ETTWATCH_KAFKA]")
@click.option("--prefix", help="What the names of topics begin with.  [default: $ETTWATCH_TOPIC_PREFIX, else ett]")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 600),
    default=10.0,
    show_default=True,
    help="Seconds to wait for the brokers.",
)
@ends_cleanly
def simulate(
    profile: str,
    seed: int,
    target: str,
    rate: "Rate",
    truth: Path | None,
    bootstrap: str | None,
    prefix: str | None,
    timeout: float,
    **told: Any,
) -> None:
    """Make up the events of a fleet: jobs that wait, start, fail, are preempted, recover and publish.

    A file gets an event a line (packed, if its name ends in .gz or .zst) and is replaced. A folder (one that is
    there, or a name that ends in /) gets a file for each job, as a spool folder has. `kafka` gets arrays of what a
    job has in a second.

    The ground truth is JSON, a line for the scenario, for each injection, start, failure, finished job and hour.

    Exit codes: 0 done; 2 nothing done, or not all.
    """
    scenario = _scenario(profile, **told)
    if truth is not None:
        _write_truth(truth, seed, scenario)
    folder = target != "-" and (target.endswith("/") or Path(target).is_dir())
    try:
        with _sink(target, folder, bootstrap, prefix, timeout) as sink:
            began = time.monotonic()
            events = _send(seed, scenario, sink, rate, began, alone=not folder and target != _KAFKA)
    except OSError as error:
        if target == "-":
            raise
        raise Refused(f"cannot write {target}: {error.strerror or error}") from None
    seconds = time.monotonic() - began
    click.echo(f"{events:,} events in {seconds:.1f} s ({events / max(seconds, 1e-3):,.0f}/s)", err=True)


def _scenario(
    profile: str, days: float | None, jobs: int | None, begin: str | None, remedies: str | None
) -> "Scenario":
    """Return the scenario that is asked for. Raises Refused."""
    from ettwatch_sim.life import PRESETS, ScenarioError, load_scenario, preset

    fields: dict[str, object] = {name: value for name, value in (("days", days), ("jobs", jobs)) if value is not None}
    if begin is not None:
        fields["begin"] = time.time_ns() // 1_000 if begin == "now" else begin
    if remedies is not None:
        short = remedies in ("all", "none")
        fields["remedies"] = remedies if short else tuple(name.strip() for name in remedies.split(","))
    try:
        base = preset(profile) if profile in PRESETS else load_scenario(Path(profile))
        return base.but(**fields)
    except ScenarioError as error:
        raise Refused(f"the scenario is wrong:\n{error}") from None
    except OSError as error:
        raise Refused(
            f"there is no profile {profile!r}, and it cannot be read as a file ({error.strerror}); "
            f"give a file, or one of {', '.join(PRESETS)}"
        ) from None


def _write_truth(path: Path, seed: int, scenario: "Scenario") -> None:
    from ettwatch_sim.life import truth

    try:
        with path.open("w", encoding="utf-8") as file:
            for line in truth(seed, scenario):
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror or error}") from None


@contextlib.contextmanager
def _sink(target: str, folder: bool, bootstrap: str | None, prefix: str | None, timeout: float) -> Iterator[Sink]:
    from ettwatch_sim.life import Folder, OneFile

    if target == _KAFKA:
        with _kafka(bootstrap, prefix, timeout) as sink:
            yield sink
    elif folder:
        with Folder(Path(target)) as files:
            yield files
    elif target == "-":
        with OneFile(None, sys.stdout.buffer) as file:
            yield file
    else:
        with OneFile(Path(target)) as file:
            yield file


@contextlib.contextmanager
def _kafka(bootstrap: str | None, prefix: str | None, timeout: float) -> Iterator[Sink]:
    """The topic of events on the brokers. Raises Refused."""
    import ettwatch_faust as side
    from ettwatch_sim.life import Sender

    try:
        usual = side.TopicSettings.read(os.environ)
        topic = side.names(usual.prefix if prefix is None else prefix).events
        access = side.Access.read(os.environ, bootstrap)
        with side.admin(access, timeout) as client:
            if topic not in client.list_topics():
                raise Refused(f"there is no topic {topic}; make it with: ettwatch topics create")
        make: Callable[[], Sender] = lambda: Sender(access.client(), topic, timeout)  # noqa: E731
        with side.connecting(access, make, timeout) as sender:
            yield sender
            sender.finish()
    except (side.SettingError, side.BrokersError) as error:
        raise Refused(str(error)) from None


def _send(seed: int, scenario: "Scenario", sink: Sink, rate: "Rate", began: float, *, alone: bool) -> int:
    """Send everything; return how many events that was."""
    from ettwatch_sim.life import Clock, batches
    from ettwatch_sim.life import simulate as events_of

    clock = Clock(rate, began)
    events, seen = 0, 0
    length = scenario.end - scenario.begin
    with Bar() as bar:
        bar.begin("simulating", 100)
        for message in batches(events_of(seed, scenario), alone=alone):
            while (wait := clock.wait(message.ts, time.monotonic())) > 0:
                time.sleep(min(wait, 1.0))
            clock.sent(message.events)
            sink.put(message)
            events += message.events
            if events - seen >= _SEVERAL:
                seen = events
                bar.set(max(0, min(99, 100 * (message.ts - scenario.begin) // length)), 100)
    return events
