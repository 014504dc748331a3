"""`ettwatch sql`: a query on the data folder's ClickHouse."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ettwatch_app.commands._folder import opened, opened_at
from ettwatch_app.commands._shared import (
    Refused,
    clickhouse_option,
    data_option,
    ends_cleanly,
    format_option,
    opened_input,
)
from ettwatch_app.datafolder import locate
from ettwatch_app.render import print_table, stdout_console, write_csv, write_json

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store

# Texts, quoted names and comments: what stands in them says nothing about the statement.
_QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`\\]|\\.|``)*`|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
_ASKS = ("select", "with", "show", "describe", "desc", "explain", "exists")


@click.command()
@click.argument("query")
@data_option
@clickhouse_option
@format_option("table", "json", "csv")
@ends_cleanly
def sql(query: str, data: Path | None, url: str | None, form: str) -> None:
    """Ask the data folder's ClickHouse, or a server; QUERY is SQL, `-` reads it from standard input.

    Views to ask: jobs, attempts, segments, phases, events. It goes through `ettwatch up` where one lives. Nothing
    can be changed this way.

    Exit codes: 0 done; 2 nothing done.
    """
    text = _question(_told(query))
    import ettwatch_clickhouse as sink

    with opened_at(url) if url is not None else opened(locate(data), "ettwatch sql") as store:
        try:
            _fence(store, text)
            answer = store.query(text)
        except sink.StoreError as error:
            raise Refused(str(error)) from None
    if form == "json":
        write_json(answer.columns, answer.rows, sys.stdout)
    elif form == "csv":
        write_csv(answer.columns, answer.rows, sys.stdout)
    else:
        print_table(answer.columns, answer.types, answer.rows, stdout_console())


def _told(query: str) -> str:
    """Return the text of a query, of `-` what standard input holds. Raises Refused for what is no text in UTF-8."""
    try:
        if query != "-":
            query.encode()
            return query
        with opened_input(query) as file:
            return file.read().decode()
    except OSError as error:
        raise Refused(f"cannot read the query: {error.strerror or error}") from None
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise Refused(f"the query is not UTF-8 at character {error.start}; send it in UTF-8") from None


def _question(text: str) -> str:
    """Bring a query into the form that is sent. Raises Refused for what is no single question."""
    query = text.strip().rstrip(";").rstrip()
    bare = _QUOTED.sub(" '' ", query).strip(" '\n\t(")
    word = re.match(r"\w*", bare)[0].lower()  # type: ignore[index]
    if not bare:
        raise Refused('the query is empty; give one such as "SELECT job, ett_pct FROM jobs"')
    if ";" in bare:
        raise Refused("this is more than one statement; ask one question at a time")
    if word in _ASKS and re.search(r"\binsert\s+into\b", bare, re.IGNORECASE):
        raise Refused("an INSERT INTO is no question, and `ettwatch sql` changes nothing; leave it out of the query")
    if word not in _ASKS:
        raise Refused(
            f"this {word.upper() or 'text'} is no question, and `ettwatch sql` changes nothing; "
            f"begin with one of {', '.join(_ASKS).upper()}"
        )
    if re.search(r"\bformat\s+\w+$", bare, re.IGNORECASE):
        raise Refused("leave FORMAT out of the query; choose with --format table, json or csv")
    return query


def _fence(store: "Store", query: str) -> None:
    """Refuse what reaches files, programs or networks, as the front of `up` does. Raises Refused, StoreError."""
    from ettwatch_clickhouse.http.fence import Fence, Refusal
    from ettwatch_clickhouse.http.statement import parse

    functions = store.query("SELECT name FROM system.table_functions")
    try:
        Fence(str(row[0]) for row in functions.rows).check(parse(query.encode("utf-8", "surrogateescape")), {})
    except Refusal as refusal:
        what = str(refusal).partition(" is ")[0]
        raise Refused(
            f"{what} is not allowed: `ettwatch sql` reads only the tables of ettwatch; "
            "redirect standard output to get a file"
        ) from None
