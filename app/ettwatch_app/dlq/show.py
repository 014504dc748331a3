"""Dead letters as a table, as JSON, as the bytes that they were."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ettwatch_app.dlq.codes import LETTER_CODES
from ettwatch_app.dlq.letters import Entry, Place, by_code
from ettwatch_app.render import clean, count, show
from ettwatch_app.render.text import moment
from ettwatch_schemas import DeadLetter

_HEAD_CELLS: Final = 90


def origin(letter: DeadLetter) -> str:
    """Write where a letter was read: `ett.events/3@1042`, and `[2]` for an event of an array."""
    place = f"{letter.topic}/{letter.partition}@{letter.offset}"
    return place if letter.index is None else f"{place}[{letter.index}]"


def print_letters(entries: Sequence[Entry], total: int, console: Console) -> None:
    """Print letters: when, where it was read, of which job, the code; below it the reason, and its first bytes.

    Args:
        entries: Those to print; the first ones of all.
        total: How many are wanted.
        console: Where to.
    """
    rows = [
        (
            moment(entry.letter.time).removesuffix(" UTC"),
            clean(origin(entry.letter)),
            clean(entry.letter.job or "-"),
            clean(entry.letter.code) + ("" if entry.handled is None else f" ({entry.handled})"),
        )
        for entry in entries
    ]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row, entry in zip(rows, entries, strict=True):
        line = "  ".join(set_cell_size(text, width) for text, width in zip(row, widths, strict=True))
        show(console, Text(line.rstrip(), style="bold"), Padding(_what(entry), (0, 0, 0, 4)))
    if len(entries) < total:
        show(console, Text(f"… and {total - len(entries):,} more", style="dim"))


def print_codes(entries: Sequence[Entry], console: Console) -> None:
    """Print how many letters there are of each code, and what it means."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    for code, number in by_code(entries):
        table.add_row(f"{number:,}", Text(clean(code), style="bold"), Text(LETTER_CODES.get(code, ""), style="dim"))
    handled = sum(entry.handled is not None for entry in entries)
    line = count(len(entries), "dead letter") + (f", {handled:,} of them dealt with" if handled else "")
    show(console, Text(line), table)


def _what(entry: Entry) -> Text:
    letter = entry.letter
    # Most reasons name the field and the fix themselves.
    reason = letter.reason if not letter.field or letter.field in letter.reason else f"{letter.field} {letter.reason}"
    text = Text(clean(reason, 400))
    if letter.fix and letter.fix not in letter.reason:
        text.append(f"\n-> {clean(letter.fix, 400)}")
    if entry.size is not None:
        text.append(f"\n{clean(entry.head.decode('utf-8', 'replace'), _HEAD_CELLS)}", style="dim")
    return text


def json_line(place: Place, letter: DeadLetter, handled: str | None) -> str:
    """Write a letter with all that is known of it as a line of JSON; bytes that are not UTF-8 as base64."""
    told: dict[str, object] = {
        "time": letter.time,
        "code": letter.code,
        "reason": letter.reason,
        "field": letter.field,
        "fix": letter.fix,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "index": letter.index,
        "job": letter.job,
        "handled": handled,
        "at": {"partition": place.partition, "offset": place.offset},
        **_bytes("key", letter.key),
        **_bytes("value", letter.value),
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"


def _bytes(name: str, data: bytes | None) -> Mapping[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def raw_line(value: bytes) -> bytes:
    """Return a message as one line. A line break in JSON stands between its parts, where a space means the same."""
    return value.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
