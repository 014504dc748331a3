"""`ettwatch sql`: a query on the data folder's ClickHouse."""

import re
import sys
from pathlib import Path

import click

from ettwatch_app.commands._shared import Refused, data_option, ends_cleanly, format_option
from ettwatch_app.datafolder import locate, open_store
from ettwatch_app.render import print_table, stdout_console, write_csv, write_json


@click.command()
@click.argument("query")
@data_option
@format_option("table", "json", "csv")
@ends_cleanly
def sql(query: str, data: Path | None, form: str) -> None:
    """Ask the data folder's ClickHouse; QUERY is SQL, `-` reads it from standard input.

    Views to ask: jobs, attempts, segments, phases, events. It goes through `ettwatch up` where one lives.

    Exit codes: 0 done; 2 nothing done.
    """
    text = (click.get_text_stream("stdin").read() if query == "-" else query).strip()
    if not text:
        raise Refused('the query is empty; give one such as "SELECT job, ett_pct FROM jobs"')
    import ettwatch_clickhouse as sink

    with open_store(locate(data), who="ettwatch sql") as store:
        try:
            answer = store.query(text)
        except sink.StoreError as error:
            raise Refused(one_line(str(error))) from None
    if form == "json":
        write_json(answer.columns, answer.rows, sys.stdout)
    elif form == "csv":
        write_csv(answer.columns, answer.rows, sys.stdout)
    else:
        print_table(answer.columns, answer.types, answer.rows, stdout_console())


def one_line(message: str) -> str:
    """Bring an error of the engine to one readable line: without its stack, its version and its wrappings."""
    text = re.split(r"\n\s*Stack trace|\bStack trace:", message)[0]
    text = re.sub(r"\(version [^)]*\)(?: \(official build\))?", "", text)
    text = re.sub(r"\(for url [^)]*\)", "", text)
    text = " ".join(text.split())
    found = re.search(r"Code: (\d+)\.? DB::Exception: (.*)", text)
    if found:
        text = re.sub(r"^(DB::Exception: )+", "", found[2])
    return text.strip().rstrip(".") or "the engine refused the query without a reason"
