"""Lines to events to states of jobs: the part of a replay that is done for every event."""

from collections.abc import Iterable

from ettwatch_app.goodput import Point, as_json, goodput, point_of
from ettwatch_app.joined import joined
from ettwatch_app.replay.options import Options
from ettwatch_app.replay.problems import Problems
from ettwatch_core import JobState, Verdict, apply, snapshot, summarize
from ettwatch_schemas import DecodeError, Event, Segment, decode_event, decode_message

_ARRAY = ord("[")
_OBJECT = ord("{")


def decoded(place: int, line: bytes, problems: Problems) -> Iterable[Event]:
    """Give the good events of a line; what is wrong with the others goes to `problems`."""
    first = line[0]
    if first != _OBJECT:
        first = line.lstrip()[0]
    if first != _ARRAY:
        try:
            return (decode_event(line),)
        except DecodeError as error:
            problems.add(place, error.code, error)
            return ()
    events, errors = decode_message(line)
    for bad in errors:
        problems.add(place, bad.code, bad)
    return events


class Tally:
    """States of jobs and where each job first appeared."""

    def __init__(self, options: Options, problems: Problems) -> None:
        self.states: dict[str, JobState] = {}
        self.first: dict[str, int] = {}
        self.accepted = 0
        self._points: dict[str, list[Point]] | None = {} if options.definition == "goodput" else None
        self._options = options
        self._problems = problems

    def add(self, place: int, event: Event) -> JobState:
        """Apply one event to its job; a refused one is a problem."""
        job = event.job
        state = self.states.get(job)
        if state is None:
            state = self.states[job] = JobState(job)
            self.first[job] = place
        elif place < self.first[job]:
            self.first[job] = place
        verdict = apply(state, event, self._options.rules)
        if verdict is Verdict.ACCEPTED:
            self.accepted += 1
            if self._points is not None and (point := point_of(event)) is not None:
                self._points.setdefault(job, []).append(point)
        elif verdict is not Verdict.DUPLICATE:
            self._refused(place, event, state, verdict)
        return state

    def _refused(self, place: int, event: Event, state: JobState, verdict: Verdict) -> None:
        if verdict is Verdict.CONFLICT:
            reason = (
                f"id: {event.id!r} was told before with other content; "
                "the lexically smaller of the two counts; give each event an id of its own"
            )
        else:
            reason = self._why_late(event, state.newest - event.ts)
        self._problems.add(place, verdict.name.lower(), reason)

    def _why_late(self, event: Event, behind: int) -> str:
        if behind <= (self._options.rules.lateness or 0):
            # In time by its own stamp, but it says something of a part of the job that is over.
            return f"ts: {event.ts} would change what was settled already; the event is refused"
        return (
            f"ts: {event.ts} is {behind / 1_000_000:,.0f} s behind the newest event of its job, "
            "more than --lateness allows; the event is refused"
        )

    def line_of(self, job: str, settled: list[Segment]) -> bytes:
        """Summarize a job as a line of JSON; `settled` are the segments that were taken out of it before."""
        state, options = self.states[job], self._options
        if self._points is not None:
            snap = snapshot(state, options.rules, options.now)
            return as_json(goodput(snap.summary, snap.attempts, snap.segments, self._points.pop(job, [])))
        if not options.segments:
            return summarize(state, options.rules, options.now).model_dump_json().encode()
        snap = snapshot(state, options.rules, options.now, keep=False)
        line = snap.summary.model_dump_json().encode()
        parts = b",".join(_segment(part) for part in joined([*settled, *snap.segments]))
        return b'%s,"segments":[%s]}' % (line[:-1], parts)


def _segment(part: Segment) -> bytes:
    # Stage names hold nothing that JSON would have to escape.
    return b'{"attempt":%d,"stage":"%s","start":%d,"end":%d,"gpus":%d}' % (
        part.attempt,
        part.stage.encode(),
        part.start,
        part.end,
        part.gpus,
    )
