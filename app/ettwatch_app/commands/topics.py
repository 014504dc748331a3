"""`ettwatch topics`: create the topics on the Kafka brokers, and check them."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
from rich.table import Table
from rich.text import Text

from ettwatch_app.commands._shared import DONE, SOME_REJECTED, Command, Refused, ends_cleanly, format_option
from ettwatch_app.render import clean, show, stdout_console, write_json

if TYPE_CHECKING:
    from ettwatch_faust import Access, Finding, TopicSettings, TopicSpec

_COLUMNS: Final = ("topic", "finding", "found", "wanted", "do")
_ALREADY_EXISTS: Final = 36
_REASONS: Final[Mapping[int, str]] = {
    29: "these credentials may not create it; give them CREATE on the cluster",
    31: "these credentials may not create it; give them CREATE on the cluster",
    38: "there are fewer brokers than copies; give --replication N",
}


def _options(command: Command) -> Command:
    """Add what both commands take."""
    for add in reversed(
        (
            click.option("--bootstrap", metavar="HOST:PORT,…", help="The brokers.  [default: $ETTWATCH_KAFKA]"),
            click.option(
                "--partitions",
                type=int,
                help="Partitions of each topic with the key job.  [default: $ETTWATCH_PARTITIONS, else 32]",
            ),
            click.option(
                "--replication", type=int, help="Copies of each partition.  [default: $ETTWATCH_REPLICATION, else 3]"
            ),
            click.option("--prefix", help="What the names begin with.  [default: $ETTWATCH_TOPIC_PREFIX, else ett]"),
            click.option(
                "--timeout",
                type=click.FloatRange(0.1, 600),
                default=10.0,
                show_default=True,
                help="Seconds to wait for the brokers.",
            ),
            format_option("table", "json"),
            ends_cleanly,
        )
    ):
        command = add(command)
    return command


@click.group()
def topics() -> None:
    """Create the topics on the Kafka brokers, or check them."""


@topics.command()
@_options
def create(form: str, timeout: float, **told: Any) -> None:
    """Create the topics that are missing, and check those that are there.

    It may be repeated, and changes no topic that exists.

    Exit codes: 0 all are there and right; 1 some are not as they have to be; 2 nothing done.
    """
    access, plan = _wanted(told)
    made: list[str] = []

    def work(client: Any) -> list["Finding"]:
        from ettwatch_faust import clash, look

        view = look(client, plan)
        if (why := clash(view, plan)) is not None:
            raise Refused(why)
        missing = [spec for spec in plan if spec.name not in view]
        if missing:
            _create(client, missing)
            made.extend(spec.name for spec in missing)
        return _check(client, plan)

    findings = _with_brokers(access, timeout, work)
    _show(findings, made, form)


@topics.command()
@_options
def check(form: str, timeout: float, **told: Any) -> None:
    """Say of each topic whether it is there and right, and what to do where it is not. Changes nothing.

    Exit codes: 0 all are there and right; 1 some are not; 2 nothing done.
    """
    access, plan = _wanted(told)
    _show(_with_brokers(access, timeout, lambda client: _check(client, plan)), [], form)


def _wanted(told: Mapping[str, Any]) -> tuple["Access", list["TopicSpec"]]:
    """The brokers and the plan, by options and environment. Raises Refused."""
    import ettwatch_faust as side

    try:
        usual: TopicSettings = side.TopicSettings.read(os.environ)
        settings = side.TopicSettings(
            usual.prefix if told["prefix"] is None else told["prefix"],
            usual.partitions if told["partitions"] is None else told["partitions"],
            usual.replication if told["replication"] is None else told["replication"],
        )
        return side.Access.read(os.environ, told["bootstrap"]), side.plan(settings)
    except (side.SettingError, side.BrokersError) as error:
        raise Refused(str(error)) from None


def _with_brokers(access: "Access", timeout: float, work: Callable[[Any], list["Finding"]]) -> list["Finding"]:
    import ettwatch_faust as side

    try:
        with side.admin(access, timeout) as client:
            return work(client)
    except side.BrokersError as error:
        raise Refused(str(error)) from None


def _check(client: Any, plan: Sequence["TopicSpec"]) -> list["Finding"]:
    from ettwatch_faust import check as compare
    from ettwatch_faust import look

    return compare(look(client, plan), plan)


def _create(client: Any, missing: Sequence["TopicSpec"]) -> None:
    """Create topics. One that someone else has created meanwhile is fine. Raises Refused."""
    wanted = {
        spec.name: {
            "num_partitions": spec.partitions,
            "replication_factor": spec.replication,
            "configs": spec.configs(),
        }
        for spec in missing
    }
    answer = client.create_topics(wanted, raise_errors=False)["topics"]
    failed = [topic for topic in answer if topic["error_code"] not in (0, _ALREADY_EXISTS)]
    if failed:
        _refuse(failed[0])
    client.wait_for_topics(list(wanted))


def _refuse(topic: Mapping[str, Any]) -> NoReturn:
    from kafka.errors import for_code

    code = topic["error_code"]
    why = _REASONS.get(code) or topic["error_message"] or for_code(code).__name__
    raise Refused(f"the brokers do not create {topic['name']}: {why}")


def _show(findings: Sequence["Finding"], made: Sequence[str], form: str) -> None:
    """Write the findings, and leave with the exit code."""
    rows = [
        (each.topic, "created" if each.ok and each.topic in made else each.code, each.found, each.wanted, each.fix)
        for each in findings
    ]
    if form == "json":
        write_json(_COLUMNS, rows, sys.stdout)
    else:
        table = Table.grid(padding=(0, 2, 0, 0))
        last = {fix: number for number, (*_, fix) in enumerate(rows)}  # one cure of many is told once, with the last
        for number, (topic, code, found, wanted, fix) in enumerate(rows):
            what = Text(clean(found))
            if wanted:
                what.append(f"{', ' if found else ''}wanted: {clean(wanted)}")
            if fix and last[fix] == number:
                what.append(f"\n-> {clean(fix, 1_000)}", style="bold")
            table.add_row(Text(clean(topic)), Text(code, style="bold red" if fix else "green"), what)
        show(stdout_console(), table)
    wrong = any(not each.ok for each in findings)
    raise SystemExit(SOME_REJECTED if wrong else DONE)
