"""What a demo shows when the events are in: the report, three queries with their answers, the proof, the way on."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from ettwatch_app.datafolder import DataFolder
from ettwatch_app.demo.check import differences, export_events
from ettwatch_app.reading import read_job, read_summaries
from ettwatch_app.render import count, print_job, print_table, show
from ettwatch_clickhouse import Store
from ettwatch_core.ownership import Owners

QUERIES = (
    (
        "Which stages took most of the time?",
        "SELECT stage, round(sum(duration_s), 1) AS seconds, count() AS times\n"
        "FROM segments GROUP BY stage ORDER BY seconds DESC LIMIT 5",
    ),
    (
        "How did each attempt go?",
        "SELECT attempt, outcome, cause, round(duration_s, 1) AS lasted_s,\n"
        "       round(coalesce(tts_s, ttr_s), 1) AS to_first_batch_s, round(unsaved_s, 1) AS unsaved_s\n"
        "FROM attempts ORDER BY attempt",
    ),
    (
        "Which rank kept the others waiting?",
        "SELECT phase, attempt, ranks, last_rank, round(behind_s, 2) AS behind_s\n"
        "FROM phases WHERE ranks > 1 ORDER BY behind_s DESC LIMIT 3",
    ),
)

_QUESTION: Final = "SELECT stage, round(sum(duration_s), 1) AS s FROM segments GROUP BY stage ORDER BY s DESC"


def show_result(store: Store, folder: DataFolder, owners: Owners, console: Console) -> tuple[bool, str]:
    """Print everything; return whether SQL and replay agree, and the job. Raises StoreError, OSError."""
    (summary,) = read_summaries(store)
    view = read_job(store, summary.job, owners)
    assert view is not None
    console.rule("the report", style="dim")
    print_job(view, console)
    for question, query in QUERIES:
        show(console, "")
        console.rule(question, style="dim")
        show(console, Text(query, style="dim"), "")
        answer = store.query(query)
        print_table(answer.columns, answer.types, answer.rows, console)
    show(console, "")
    console.rule("the proof", style="dim")
    path = folder.root / "events.jsonl"
    number = export_events(store, summary.job, path)
    wrong = differences(view.summary, path)
    if wrong:
        show(console, Text(f"a replay of the {count(number, 'event')} gives other numbers than SQL:", style="bold red"))
        show(console, *(Text(f"  {line}") for line in wrong))
    else:
        show(console, Text(f"a replay of the {count(number, 'event')} gives the same numbers as SQL, field by field"))
    return not wrong, summary.job


def show_way_on(folder: DataFolder, job: str, console: Console) -> None:
    """Print where the data lie and what can be done with them."""
    root, ettwatch = _short(folder), _called(sys.argv[0])
    lines = (
        "",
        f"The data lie in {root}. Go on with:",
        f"  {ettwatch} report {shlex.quote(job)} --data {root}",
        f'  {ettwatch} sql "{_QUESTION}" --data {root}',
        f"  {ettwatch} replay {root}/events.jsonl --format table",
        f"  {ettwatch} doctor --data {root}",
    )
    for line in lines:
        # A line to paste is not broken, however narrow the screen is.
        console.print(Text(line), soft_wrap=True)


def _called(program: str) -> str:
    """Return how this command is called: by its name where the shell finds it by that, else by its path."""
    path = Path(program)
    if path.name != "ettwatch":
        return "ettwatch"  # a module, or a test, is not what people type
    found = shutil.which("ettwatch")
    if found is not None and Path(found).resolve() == path.resolve():
        return "ettwatch"
    near = os.path.relpath(path)
    return shlex.quote(program if near.startswith("..") else near)


def _short(folder: DataFolder) -> str:
    near = os.path.relpath(folder.root)
    return shlex.quote(str(folder.root) if near.startswith("..") else near)
