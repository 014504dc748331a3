"""One file to events: the reader's, and for each job one that says that it was submitted and what is not known of it.

Memory is bounded: events are held in blocks, sorted by time within a block, and handed on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ettwatch_schemas import JobSubmitted
from ettwatch_sources.feed import Doubts, Feed, Options
from ettwatch_sources.kinds import Kind
from ettwatch_sources.told import Refused, Told, make

BLOCK: Final = 20_000
"""Events that are held before they are handed on."""

_MANY: Final = 100_000


@dataclass(slots=True)
class Report:
    """What came of a file.

    Attributes:
        kind: Name of its kind.
        events: How many events it gave.
        jobs: The jobs it told of, at most 100,000.
        last_attempt: The highest number of an attempt in it; None where there is none.
        doubts: What could not be known, and what was refused.
    """

    kind: str
    events: int = 0
    jobs: set[str] = field(default_factory=set)
    last_attempt: int | None = None
    doubts: Doubts = field(default_factory=Doubts)

    @property
    def refused(self) -> int:
        """How many lines count for nothing."""
        return self.doubts.refusals.total()


class Import:
    """Reads one file. `told()` yields its events; `report` is whole when it has ended."""

    def __init__(self, kind: Kind, name: str, chunks: Iterable[bytes], options: Options) -> None:
        self._kind = kind
        self._feed = Feed(name, chunks, options)
        for code in kind.unknown:
            self._feed.flag(code)
        self._announced: set[str] = set()
        self._gpus: set[str] = set()
        self.report = Report(kind.name, doubts=self._feed.doubts)

    def told(self) -> Iterator[Told]:
        """Yield the events of the file, each job's submission first."""
        block: list[Told] = []
        for told in self._kind.read(self._feed):
            block.append(told)
            if len(block) >= BLOCK:
                yield from self._hand_on(block)
                block = []
        yield from self._hand_on(block)

    def _hand_on(self, block: list[Told]) -> Iterator[Told]:
        report = self.report
        submitted: dict[str, Told] = {}
        first: dict[str, Told] = {}
        for told in block:
            event = told.event
            if isinstance(event, JobSubmitted):
                older = submitted.get(event.job)
                if older is None or event.ts < older.event.ts:
                    submitted[event.job] = told
            if getattr(event, "gpus", None) is not None:
                self._gpus.add(event.job)
            if event.attempt is not None and event.attempt > (report.last_attempt or -1):
                report.last_attempt = event.attempt
            older = first.get(event.job)
            if older is None or event.ts < older.event.ts:
                first[event.job] = told
            if len(report.jobs) < _MANY:
                report.jobs.add(event.job)
        out = [told for told in block if not isinstance(told.event, JobSubmitted)]
        for job, told in first.items():
            if job in submitted or job not in self._announced:
                out.append(self._submission(job, submitted.get(job), told))
        self._announced.update(first)
        out.sort(key=lambda told: told.event.ts)
        report.events += len(out)
        yield from out

    def _submission(self, job: str, told: Told | None, first: Told) -> Told:
        """The event that says that the job was submitted, with the flags of what is not known of it.

        Where the file has none, its time is that of the job's first event, so that it moves nothing.
        """
        known = self._feed.options.gpus is not None or job in self._gpus
        flags = [code for code in self._feed.doubts.of(job) if code != "no_gpus" or not known]
        labels = {"import": self._kind.name}
        if flags:
            labels["import_flags"] = ",".join(flags)
        options = self._feed.options
        if told is None or not isinstance(told.event, JobSubmitted):
            own = {"team": options.team, "model": options.model, "cluster": options.cluster, "gpus": options.gpus}
            return Told(make(JobSubmitted, job=job, ts=first.event.ts, labels=labels, **own), first.place)
        event = told.event
        fields = event.model_dump(exclude={"id", "v", "kind", "labels"}, exclude_none=True)
        own = {"team": options.team, "model": options.model, "cluster": options.cluster, "gpus": options.gpus}
        fields = {name: value for name, value in own.items() if value is not None} | fields
        try:
            return Told(make(JobSubmitted, labels=labels | dict(event.labels or {}), **fields), told.place)
        except Refused:
            return told
