"""`ettwatch alerts silence`: keep alerts with certain labels quiet for a time, and on record who did."""

import getpass
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ettwatch_app.commands._alerts import alert_options, now_us, outbox_of, rules_of
from ettwatch_app.commands._shared import Refused, ends_cleanly, format_option
from ettwatch_app.render import clean
from ettwatch_schemas.durations import parse_duration, parse_instant

if TYPE_CHECKING:
    from ettwatch_monitor.alerts.deliver import Matcher, Silence, SilenceEntry

_LONGEST_WORDS = 500


@click.group()
def silence() -> None:
    """Keep alerts with certain labels from being told for a time."""


@silence.command()
@click.argument("matchers", nargs=-1, required=True, metavar="MATCHER...")
@click.option("--for", "lasts", metavar="DUR", help="How long, such as 4h.")
@click.option("--until", metavar="TIME", help="Until when, RFC 3339 with its zone; instead of --for.")
@click.option("--from", "begins", metavar="TIME", help="When it begins.  [default: now]")
@click.option("--why", required=True, help="Why, for people.")
@click.option("--by", help="Who you are.  [default: the name of the login]")
@alert_options("state")
@format_option("text", "json")
@ends_cleanly
def add(
    matchers: Sequence[str],
    lasts: str | None,
    until: str | None,
    begins: str | None,
    why: str,
    by: str | None,
    state: Path,
    form: str,
) -> None:
    """Keep alerts quiet whose labels fulfil every MATCHER, such as team=ads or model=~"llama.*".

    It counts within seconds for `ettwatch alerts run`, which need not be restarted.

    Exit codes: 0 done; 2 nothing done.
    """
    from ettwatch_monitor.alerts.deliver import Silence, routing_labels

    now = now_us()
    wanted = _matchers(matchers)
    start = now if begins is None else _time("--from", begins)
    end = _end(start, lasts, until)
    if end <= now:
        raise Refused("the silence would be over already; give a later --until, or --for how long")
    if end <= start:
        raise Refused("the silence would end before it begins; correct --from or --until")
    kept = Silence(wanted, end, start, _words("--why", why))
    who = _who(by)
    with outbox_of(state) as outbox:
        number = outbox.silence(kept, who, now)
        hit = [
            known.alert.key
            for known in outbox.firing()
            if all(matcher.matches(routing_labels(known.alert)) for matcher in wanted)
        ]
    if form == "json":
        click.echo(json.dumps({"number": number, "firing": hit}, ensure_ascii=False))
        return
    click.echo(f"silence {number}: {clean(', '.join(map(str, wanted)), 400)}, {_span(start, end)}")
    click.echo(
        f"  it matches {len(hit):,} of the alerts that fire now:" if hit else "  it matches no alert that fires now"
    )
    for key in hit:
        click.echo(f"  {clean(key, 200)}")


@silence.command("list")
@click.option("--all", "past", is_flag=True, help="Also those that are over, and who ended them.")
@alert_options("rules", "state")
@format_option("table", "json")
@ends_cleanly
def list_silences(past: bool, rules: Path | None, state: Path, form: str) -> None:
    """Show the silences that hold or are yet to begin: those that were added, and those of the file of rules.

    Exit codes: 0 done; 2 nothing done.
    """
    now = now_us()
    with outbox_of(state) as outbox:
        held = {one.number: one for one in outbox.silences(now)}
        entries = outbox.book.on_record()
    known = {entry.number for entry in entries}
    rows = [_row(entry, now) for entry in entries if past or entry.number in held]
    rows += [_plain(one, "", now) for number, one in held.items() if number not in known]
    listed = [] if rules is None else rules_of(rules).delivery.silences
    rows += [_plain(one, str(rules), now) for one in listed if past or one.ends_at > now]
    if form == "json":
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
        return
    for row in rows:
        _show(row)
    if not rows:
        click.echo("nothing is silenced")


@silence.command()
@click.argument("number", type=click.IntRange(1, (1 << 63) - 1))
@click.option("--why", default="", help="Why, for people.")
@click.option("--by", help="Who you are.  [default: the name of the login]")
@alert_options("state")
@ends_cleanly
def end(number: int, why: str, by: str | None, state: Path) -> None:
    """End the silence NUMBER before its time; what it kept back and still fires is told.

    Exit codes: 0 done; 2 there is no such silence, or it is over.
    """
    who, said = _who(by), _words("--why", why) if why else ""
    with outbox_of(state) as outbox:
        if not outbox.unsilence(number, who, said, now_us()):
            raise Refused(f"no silence {number} holds; `ettwatch alerts silence list` shows the numbers")
    click.echo(f"silence {number}: ended")


def _matchers(texts: Sequence[str]) -> "tuple[Matcher, ...]":
    from ettwatch_monitor.alerts.deliver import MatcherError, parse_matchers

    try:
        found = tuple(matcher for text in texts for matcher in parse_matchers(text))
    except MatcherError as error:
        raise Refused(str(error)) from None
    if not all(_unicode(text) for text in texts):
        raise Refused("a matcher is no Unicode; check the encoding of the terminal")
    if all(matcher.matches({}) for matcher in found):
        raise Refused("this matches any alert whatever; add a label that it must have, such as team=ads")
    return found


def _time(option: str, text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise Refused(f"{option}: {error}") from None


def _end(start: int, lasts: str | None, until: str | None) -> int:
    if (lasts is None) == (until is None):
        raise Refused("say when it ends: --for how long, or --until when, one of them")
    if until is not None:
        return _time("--until", until)
    try:
        length = parse_duration(lasts or "")
    except ValueError as error:
        raise Refused(f"--for: {error}") from None
    if length == 0:
        raise Refused("--for: the silence would have no length; give a time such as 4h")
    return start + length


def _words(option: str, text: str) -> str:
    words = " ".join(text.split())
    if not words:
        raise Refused(f"{option}: say it in words")
    if len(words) > _LONGEST_WORDS or not _unicode(words):
        raise Refused(f"{option}: at most {_LONGEST_WORDS} characters of Unicode")
    return words


def _unicode(text: str) -> bool:
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in text)


def _who(by: str | None) -> str:
    if by is not None:
        return _words("--by", by)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise Refused("nobody knows who you are; say it with --by") from None


def _row(entry: "SilenceEntry", now: int) -> dict[str, object]:
    begun = "pending" if now < entry.starts_at else "active"
    state = "ended" if entry.ended_at is not None else begun if now < entry.ends_at else "over"
    return {"state": state, "source": "command", **entry._asdict()}


def _plain(one: "Silence", source: str, now: int) -> dict[str, object]:
    """A silence of which nobody noted who made it."""
    state = "pending" if now < one.starts_at else "active" if now < one.ends_at else "over"
    return {
        "state": state,
        "source": source,
        "number": one.number,
        "matchers": ", ".join(map(str, one.matchers)),
        "starts_at": one.starts_at,
        "ends_at": one.ends_at,
        "comment": one.comment,
    }


def _show(row: dict[str, object]) -> None:
    from ettwatch_monitor.alerts.watch.words import instant

    number = "rules" if row["number"] is None else str(row["number"])
    click.echo(
        f"{number:<6}{row['state']!s:<9}{clean(str(row['matchers']), 400)}  {_span(row['starts_at'], row['ends_at'])}"
    )
    by = f" ({clean(str(row['made_by']), 100)})" if row.get("made_by") else ""
    click.echo(f"  {clean(str(row['comment']), _LONGEST_WORDS) or 'no reason was given'}{by}")
    ended = row.get("ended_at")
    if isinstance(ended, int):
        why = f": {clean(str(row['ended_why']), _LONGEST_WORDS)}" if row["ended_why"] else ""
        click.echo(f"  ended {instant(ended)} by {clean(str(row['ended_by']), 100) or 'somebody'}{why}")


def _span(start: object, end: object) -> str:
    from ettwatch_monitor.alerts.watch.words import instant

    assert isinstance(start, int)
    assert isinstance(end, int)
    return f"{instant(start)} to {instant(end)}" if start else f"until {instant(end)}"
