"""Slurm accounting in files: `sacct --parsable2` (or `--parsable`), `sacct --json`, `scontrol show job` in one-liners.

Times without a zone are the cluster's local time: give `--zone`, or export with `TZ=UTC` or `SLURM_TIME_FORMAT=%s`.
Requeues under one id need `sacct --duplicates`.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain
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
_TABLE: Final = re.compile(r"\s*JobID(?:Raw)? .*\n[- ]+\r?\n")
_HELD: Final = 20_000
_NOTHING: Final = "No jobs in the system"
"""What scontrol says where there are none."""


def read(feed: Feed) -> Iterator[Told]:
    """Read the records of a file. Runs of one job may stand apart, in any order, up to 20,000 records."""
    ids = Ids()
    groups: OrderedDict[tuple[str, str], list[Record]] = OrderedDict()
    held = 0
    for record in records(feed):
        name = (record.cluster, record.job_id)
        groups.setdefault(name, []).append(record)
        groups.move_to_end(name)
        held += 1
        while held > _HELD:
            _, oldest = groups.popitem(last=False)
            held -= len(oldest)
            yield from tell_group(feed, oldest, ids)
    for group in groups.values():
        yield from tell_group(feed, group, ids)


def tell_group(feed: Feed, group: list[Record], ids: Ids) -> Iterator[Told]:
    """Yield the events of records of one id, in the order of their submission."""
    ordered = sorted(_newest(group), key=lambda record: (record.submit is None, record.submit or 0, record.start or 0))
    for index, record in enumerate(ordered):
        yield from tell(feed, record, ids, final=index == len(ordered) - 1)


def _newest(group: list[Record]) -> list[Record]:
    """Of each run what was asked last: outputs of several times may stand in one file."""
    runs: dict[tuple[int | None, int | None], Record] = {}
    for record in sorted(group, key=lambda record: record.line):
        older = runs.get((record.submit, record.start))
        if older is None or older.end is None or record.end is not None:
            runs[record.submit, record.start] = record
    begun = {submit for submit, start in runs if start is not None}
    return [record for (submit, start), record in runs.items() if start is not None or submit not in begun]


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
    if first.text.strip() == _NOTHING:
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
            yield from _real(feed, from_json(item.value, clock, item.line))
        except (NoRecord, NoTime, TypeError, AttributeError) as error:
            feed.refuse(f"no record: {error}")


def _oneliners(feed: Feed, first: Line, rest: Iterator[Line]) -> Iterator[Record]:
    """Records of scontrol: each in a line, or in several of which all but the first are indented."""
    clock = clock_of(feed)
    held: list[Line] = []
    for line in chain((first,), rest, (None,)):
        if line is not None and (not line.text.strip() or (held and line.text[:1].isspace())):
            held += [line] if line.text.strip() else []
            continue
        if held:
            text, number = " ".join(one.text.strip() for one in held), held[0].number
            try:
                yield from _real(feed, from_oneliner(text, clock, number))
            except (NoRecord, NoTime) as error:
                if held[-1].cut:
                    feed.flag("truncated")
                feed.refuse(f"no record: {error}", number)
        held = [] if line is None else [line]


def _real(feed: Feed, record: Record) -> Iterator[Record]:
    """Drop times that are forecasts (the end of a job that runs, the start of one that waits) or cannot be."""
    word, state = state_of(record.state)
    if state is not None and state.outcome is None:
        record.end = None
        if word in {"PENDING", "RESV_DEL_HOLD"}:
            record.start = None
    if record.start is not None and record.end is not None and record.end < record.start:
        feed.refuse(f"job {record.job_id} ends before it starts: its end is not taken", record.line)
        record.end = None
    if all(time is None for time in (record.submit, record.eligible, record.start, record.end)):
        feed.refuse(f"job {record.job_id} has no time", record.line)
        return
    yield record


def _cells(feed: Feed, first: Line, rest: Iterator[Line]) -> Iterator[Record]:
    clock = clock_of(feed)
    header = [cell.strip() for cell in first.text.split("|")]
    if "JobID" not in header:
        feed.refuse("the first line is no header with JobID; export with --parsable2 and without --noheader")
        return
    last: Record | None = None
    for line in rest:
        if not line.text.strip():
            continue
        cells = _fitted(line.text.split("|"), header)
        if cells is not None and [cell.strip() for cell in cells] == header:
            continue  # files that were put together, each with its own
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
            yield from _real(feed, last)
        last = record
    if last is not None:
        yield from _real(feed, last)


def _fitted(cells: list[str], header: list[str]) -> list[str] | None:
    """The cells of a row; a name of a job with bars in it is put together again."""
    extra = len(cells) - len(header)
    if extra > 0 and "JobName" in header:
        at = header.index("JobName")
        return [*cells[:at], "|".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]
    return cells if not extra else None


def _is_it(head: str, name: str) -> bool:
    first = head.split("\n", 1)[0]
    if _HEADER.search(first) and "|State" in first:
        return True
    if first.startswith("JobId=") and "JobState=" in head:
        return True
    if _TABLE.match(head):
        return True  # to say how it should have been exported
    return head.lstrip().startswith("{") and '"slurm"' in head.lower() and ('"jobs"' in head or '"meta"' in head)


KIND: Final = Kind(
    name="slurm",
    title="Slurm accounting (sacct --parsable2, sacct --json, scontrol show job)",
    read=read,
    is_it=_is_it,
    unknown=("no_positions", "no_phases", "no_data_wait"),
)
