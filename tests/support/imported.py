"""Files of other tools, imported and folded: what their jobs come to."""

import json
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

from ettwatch_core import JobState, Rules, Snapshot, Verdict, apply, snapshot
from ettwatch_schemas import Event, JobSummary, decode_event
from ettwatch_sources import KIND_NAMES, Import, Options, Report, Told, kind_of, line_of

NO_LIMIT = Rules(lateness=None)


class Imported:
    """What came of a file."""

    def __init__(self, kind: str, text: str | bytes, name: str = "run.log", **options: Any) -> None:
        data = text.encode() if isinstance(text, str) else text
        found = KIND_NAMES[kind] if kind != "auto" else kind_of(data, name)
        assert found is not None, "the kind of the file was not known"
        zone = options.pop("zone", None)
        work = Import(found, name, [data], Options(zone=ZoneInfo(zone) if zone else None, **options))
        self.told: list[Told] = list(work.told())
        self.report: Report = work.report
        # Through the wire, as everything goes.
        self.events: list[Event] = [decode_event(line_of(told)) for told in self.told]

    @property
    def jobs(self) -> dict[str, JobSummary]:
        return {job: shot.summary for job, shot in folded(self.events).items()}

    @property
    def job(self) -> JobSummary:
        """The only job."""
        (summary,) = self.jobs.values()
        return summary

    @property
    def flags(self) -> set[str]:
        return {code for flags in self.report.doubts.flags.values() for code in flags}

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind, as plain values."""
        return [json.loads(event.model_dump_json(exclude_none=True)) for event in self.events if event.kind == kind]


def folded(events: Iterable[Event], now: int | None = None) -> dict[str, Snapshot]:
    """Draw every job of the events."""
    states: dict[str, JobState] = {}
    for event in events:
        state = states.setdefault(event.job, JobState(event.job))
        assert apply(state, event, NO_LIMIT) in {Verdict.ACCEPTED, Verdict.DUPLICATE}
    return {job: snapshot(state, NO_LIMIT, now) for job, state in states.items()}
