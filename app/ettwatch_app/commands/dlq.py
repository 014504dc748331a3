"""`ettwatch dlq`: look at the dead letters, send them again, or put them away."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from ettwatch_app import dlq as letters_side
from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import DONE, SOME_REJECTED, Command, Refused, ends_cleanly, format_option
from ettwatch_app.dlq import Choice, Courier, Entry, LetterTopic, Place, letter_options
from ettwatch_app.render import count, stdout_console

_SHOWN: Final = 100
_SHOWN_BEFORE: Final = 10


@click.group()
def dlq() -> None:
    """Look at the dead letters, send them again, or put them away."""


def _changing(command: Command) -> Command:
    """Add what `replay` and `drop` take."""
    for add in reversed(
        (
            letter_options,
            click.option("--all-letters", is_flag=True, help="Without any filter: all that were not dealt with."),
            click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing."),
            click.option("--yes", is_flag=True, help="Do not ask."),
            ends_cleanly,
        )
    ):
        command = add(command)
    return command


@dlq.command("list")
@letter_options
@click.option("--all", "handled", is_flag=True, help="Also those that were replayed or dropped.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the messages into a new file too, one a line.",
)
@format_option("table", "json", "raw")
@ends_cleanly
def list_letters(form: str, handled: bool, output: Path | None, **told: Any) -> None:
    """Show the dead letters that were not dealt with, the oldest first, and how many there are of each code.

    Exit codes: 0 done; 1 done, but some records of the topic are no dead letters; 2 nothing done.
    """
    choice = _choice(told)
    if output is not None and output.exists():
        raise Refused(f"{output} is there already; give another name")
    if form == "raw" and sys.stdout.isatty():
        raise Refused("raw messages may upset a terminal; send them to a file or a pipe, or take --format json")
    with _surveyed(choice, handled=handled) as (topic, entries, strangers):
        if form == "table":
            _print(entries, _SHOWN if choice.limit is None else choice.limit)
        if form == "json":
            marked = {entry.place: entry.handled for entry in entries}
            for place, letter in topic.pick(marked):
                sys.stdout.write(letters_side.json_line(place, letter, marked[place]))
        if form == "raw":
            _values(topic, entries, sys.stdout.buffer.write)
        if output is not None:
            _save(topic, entries, output)
    raise SystemExit(SOME_REJECTED if strangers else DONE)


@dlq.command()
@_changing
def replay(all_letters: bool, dry_run: bool, yes: bool, **told: Any) -> None:
    """Send the messages of dead letters again, with their original bytes, and mark the letters as replayed.

    A message goes to the topic that it was read from. It is sent whole, and once, however many letters it has; all of
    them are marked, after the brokers have acknowledged it.

    Exit codes: 0 done; 1 done, but some messages were not sent; 2 nothing done.
    """
    choice = _choice(told, all_letters=all_letters)
    with _surveyed(choice) as (topic, entries, _):
        chosen = letters_side.messages(entries).keys()
        if not _settled(entries, f"send {count(len(chosen), 'message')} again", dry_run=dry_run, yes=yes):
            return
        _there(choice, {entry.letter.topic for entry in entries} & {choice.events, *choice.outputs})
        router = letters_side.Router(choice.events, choice.outputs)

        def work(courier: Courier, bar: Bar) -> None:
            bar.begin("sending", topic.length)
            for place, letter in topic.letters(bar.set):
                courier.replay(place, letter, chosen, router)
            courier.settle()

        courier = _deliver(choice, work, lambda done: f"{done.sent:,} of {count(len(chosen), 'message')}")
    click.echo(f"sent {count(courier.sent, 'message')} again, marked {count(courier.marked, 'letter')} as replayed")
    missed = courier.missed(chosen)
    if missed:
        click.echo(f"warning: {count(missed, 'message')} left the topic meanwhile, and could not be sent", err=True)
    for message, why in courier.refused.items():
        click.echo(f"not sent: {message.topic}/{message.partition}@{message.offset}: {why}", err=True)
    raise SystemExit(SOME_REJECTED if missed or courier.refused else DONE)


@dlq.command()
@_changing
def drop(all_letters: bool, dry_run: bool, yes: bool, **told: Any) -> None:
    """Mark dead letters as dropped: nothing is sent, and `list` leaves them out. They stay in the topic.

    Exit codes: 0 done; 2 nothing done.
    """
    choice = _choice(told, all_letters=all_letters)
    with _surveyed(choice) as (_, entries, _):
        if not _settled(entries, f"drop {count(len(entries), 'letter')}", dry_run=dry_run, yes=yes):
            return

        def work(courier: Courier, bar: Bar) -> None:
            bar.begin("marking", len(entries))
            for number, entry in enumerate(entries):
                courier.mark(entry.place, entry.letter, "dropped", entry.message)
                bar.set(number, len(entries))
            courier.settle()

        courier = _deliver(choice, work, lambda done: f"{done.marked:,} of {count(len(entries), 'letter')}")
    click.echo(f"marked {count(courier.marked, 'letter')} as dropped")


def _choice(told: dict[str, Any], *, all_letters: bool = True) -> Choice:
    """What the options say. Raises Refused."""
    from ettwatch_faust import BrokersError

    try:
        choice = letters_side.read_choice(told)
    except (ValueError, BrokersError) as error:
        raise Refused(str(error)) from None
    if choice.everything and not all_letters:
        raise Refused(
            "nothing says which letters; give --code, --job, --topic, --since, --until or --limit, or --all-letters"
        )
    return choice


def _there(choice: Choice, topics: Iterable[str]) -> None:
    """See that topics are there. Raises Refused where one is missing, or the brokers are not reached."""
    from ettwatch_faust import BrokersError, SettingError, precheck

    try:
        for name in sorted(topics):
            precheck(choice.access, [spec for spec in choice.plan if spec.name == name], choice.seconds)
    except (BrokersError, SettingError) as error:
        raise Refused(str(error)) from None


@contextmanager
def _surveyed(choice: Choice, *, handled: bool = False) -> Iterator[tuple[LetterTopic, Sequence[Entry], int]]:
    """Read the topic once: it, the letters that are wanted, and how many records are none. Raises Refused."""
    from ettwatch_faust import BrokersError

    _there(choice, {choice.letters})
    try:
        with letters_side.open_topic(choice.access, choice.letters, choice.seconds) as topic:
            with Bar() as bar:
                bar.begin("reading", topic.length)
                found = topic.survey(choice.wanted, bar.set)
            if found.strangers:
                click.echo(
                    f"warning: {count(found.strangers, 'record')} of {choice.letters} "
                    f"cannot be read as dead letters; the first: {found.stranger}",
                    err=True,
                )
            yield topic, found.selected(handled=handled)[: choice.limit], found.strangers
    except BrokersError as error:
        raise Refused(str(error)) from None


def _print(entries: Sequence[Entry], most: int) -> None:
    console = stdout_console()
    letters_side.print_letters(entries[:most], len(entries), console)
    letters_side.print_codes(entries, console)


def _values(topic: LetterTopic, entries: Sequence[Entry], write: Callable[[bytes], object]) -> int:
    """Write each message once, as a line; return how many."""
    first: dict[Place, None] = {of[0].place: None for of in letters_side.messages(entries).values()}
    written = 0
    for _, letter in topic.pick(first):
        if letter.value is not None:
            write(letters_side.raw_line(letter.value))
            written += 1
    return written


def _save(topic: LetterTopic, entries: Sequence[Entry], path: Path) -> None:
    """Write the messages into a new file. Raises Refused."""
    try:
        # Events may tell what is not for everybody.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            written = _values(topic, entries, file.write)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}; give another name with --output") from None
    click.echo(f"wrote {count(written, 'message')} to {path}", err=True)


def _settled(entries: Sequence[Entry], what: str, *, dry_run: bool, yes: bool) -> bool:
    """Show what would be done, and ask whether to do it. Raises Refused where nobody answers."""
    _print(entries, _SHOWN_BEFORE)
    if not entries:
        click.echo("nothing to do")
        return False
    if dry_run:
        click.echo(f"would {what}")
        return False
    if yes:
        return True
    try:
        sure = click.confirm(f"{what[0].upper()}{what[1:]}?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise Refused("nobody answers; nothing was done. Give --yes, or --dry-run to see what would be done") from None
    if not sure:
        click.echo("nothing was done")
    return sure


def _deliver(choice: Choice, work: Callable[[Courier, Bar], None], done: Callable[[Courier], str]) -> Courier:
    """Do the work with a courier, and return it. Raises Refused; exits where the brokers went away in the middle."""
    from ettwatch_faust import BrokersError

    courier: Courier | None = None
    try:
        with (
            letters_side.open_courier(choice.access, choice.letters, choice.seconds, time.time_ns() // 1000) as courier,
            Bar() as bar,
        ):
            work(courier, bar)
    except BrokersError as error:
        if courier is None or not (courier.sent or courier.marked):
            raise Refused(str(error)) from None
        click.echo(f"Error: {error}; {done(courier)} were done before: run it again for the rest", err=True)
        raise SystemExit(SOME_REJECTED) from None
    return courier
