"""Slurm accounting in files: `sacct --parsable2` (or `--parsable`), `sacct --json`, `scontrol show job` in one-liners.

Times without a zone are the cluster's local time: give `--zone`, or export with `TZ=UTC` or `SLURM_TIME_FORMAT=%s`.
Requeues under one id need `sacct --duplicates`.
"""

import re
from collections.abc import Iterator
from typing import Final

from ettwatch_sources.feed import Feed
from ettwatch_sources.kinds import Kind
from ettwatch_sources.lines import Line
from ettwatch_sources.slurm.record import Clock, NoRecord, Record, from_cells, from_json, from_oneliner
from ettwatch_sources.slurm.tell import Ids, tell
from ettwatch_sources.slurm.words import state_of
from ettwatch_sources.times import NoTime, Zero
from ettwatch_sources.told import Told

_HEADER: Final = re.compile(r"^JobID(?:Raw)?\||\|JobID\|")


def read(feed: Feed) -> Iterator[Told]:
    """Read the records of a file."""
    ids = Ids()
    group: list[Record] = []
    for record in records(feed):
        if group and record.job_id != group[0].job_id:
            yield from tell_group(feed, group, ids)
            group = []
        group.append(record)
    yield from tell_group(feed, group, ids)


def tell_group(feed: Feed, group: list[Record], ids: Ids) -> Iterator[Told]:
    """Yield the events of records of one id, in the order of their submission."""
    ordered = sorted(group, key=lambda record: (record.submit is None, record.submit or 0, record.start or 0))
    for index, record in enumerate(ordered):
        yield from tell(feed, record, ids, final=index == len(ordered) - 1)


def clock_of(feed: Feed) -> Clock:
    """Return what reads Slurm's times: seconds since the epoch, or local times in the zone of the options."""

    def clock(value: object) -> int | None:
        if value is None or value == 0:
            return None
        if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()):
            feed.flag("whole_seconds")
            try:
                return feed.time_of_number(value, "s")
            except Zero:
                return None
        return feed.time_of_text(str(value))

    return clock


def records(feed: Feed) -> Iterator[Record]:
    """Yield the records of a file, of whatever form it is; steps are joined to the record they follow."""
    source = feed.lines()
    first = next(source, None)
    while first is not None and not first.text.strip():
        first = next(source, None)
    if first is None:
        return
    if first.text.lstrip().startswith("{"):
        yield from _json(feed, first, source)
    elif "JobId=" in first.text:
        yield from _oneliners(feed, first, source)
    else:
        yield from _cells(feed, first, source)


def _json(feed: Feed, first: Line, rest: Iterator[Line]) -> Iterator[Record]:
    clock = clock_of(feed)
    for item in feed.items_of(first, rest, "jobs"):
        try:
            if not isinstance(item.value, dict):
                raise NoRecord("a member of jobs that is no object")
            yield from _real(from_json(item.value, clock, item.line))
        except (NoRecord, NoTime, TypeError, AttributeError) as error:
            feed.refuse(f"no record: {error}")


def _oneliners(feed: Feed, first: Line, rest: Iterator[Line]) -> Iterator[Record]:
    clock = clock_of(feed)
    line: Line | None = first
    while line is not None:
        if line.text.strip():
            try:
                yield from _real(from_oneliner(line.text, clock, line.number))
            except (NoRecord, NoTime) as error:
                feed.refuse(f"no record: {error}")
        line = next(rest, None)


def _real(record: Record) -> Iterator[Record]:
    """Drop times that are forecasts: the end of a job that runs, the start of one that waits."""
    word, state = state_of(record.state)
    if state is not None and state.outcome is None:
        record.end = None
        if word in {"PENDING", "RESV_DEL_HOLD"}:
            record.start = None
    yield record


def _cells(feed: Feed, first: Line, rest: Iterator[Line]) -> Iterator[Record]:
    clock = clock_of(feed)
    header = [cell.strip() for cell in first.text.lstrip("\ufeff").split("|")]
    if "JobID" not in header:
        feed.refuse("the first line is no header with JobID; export without --noheader, with --parsable2")
        return
    last: Record | None = None
    for line in rest:
        if not line.text.strip():
            continue
        cells = _fitted(line.text.split("|"), header)
        if cells is None:
            if line.cut:
                feed.flag("truncated")
            feed.refuse(f"the row has {line.text.count('|') + 1} cells, the header {len(header)}")
            continue
        try:
            record, step = from_cells(dict(zip(header, cells, strict=True)), clock, line.number)
        except NoRecord as error:
            feed.refuse(f"no record: {error}")
            continue
        if step:
            if last is not None and last.job_id == record.job_id:
                last.steps.add(record.state)
            continue
        if last is not None:
            yield from _real(last)
        last = record
    if last is not None:
        yield from _real(last)


def _fitted(cells: list[str], header: list[str]) -> list[str] | None:
    """The cells of a row; a name of a job with bars in it is put together again."""
    extra = len(cells) - len(header)
    if extra > 0 and "JobName" in header:
        at = header.index("JobName")
        return [*cells[:at], "|".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]
    return cells if not extra else None


def _is_it(head: str, name: str) -> bool:
    first = head.lstrip("\ufeff \n").split("\n", 1)[0]
    if _HEADER.search(first) and "|State" in first:
        return True
    if first.startswith("JobId=") and "JobState=" in first:
        return True
    return head.lstrip().startswith("{") and '"slurm"' in head.lower() and ('"jobs"' in head or '"meta"' in head)


KIND: Final = Kind(
    name="slurm",
    title="Slurm accounting (sacct --parsable2, sacct --json, scontrol show job)",
    read=read,
    is_it=_is_it,
    unknown=("no_positions", "no_phases", "no_data_wait"),
)
