"""Random updates of every kind, and dead letters."""

from typing import Any

from hypothesis import strategies as st

from ettwatch_schemas import (
    CODES,
    MAX_TS,
    MIN_TS,
    AttemptSummary,
    AttemptsUpdate,
    DeadLetter,
    Hour,
    JobSummary,
    PhaseKey,
    PhaseSpan,
    PhasesUpdate,
    Segment,
    SegmentsUpdate,
)
from support.examples import ATTEMPT, JOB, phases

HOUR = 3_600_000_000

_text = st.text(max_size=20)
_job = st.text(min_size=1, max_size=20)
_count = st.integers(0, 2**31 - 1)
_amount = st.integers(0, 2**63 - 1)
_ts = st.integers(MIN_TS, MAX_TS)
_seconds = st.floats(0, 1e9)
_by_stage = st.dictionaries(phases(), _seconds, max_size=3)


def _summary(kind: Any, told: dict[str, Any], **drawn: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(drawn).map(lambda some: kind(**(told | some)))


def summaries() -> st.SearchStrategy[JobSummary]:
    """Summaries of jobs."""
    return _summary(
        JobSummary,
        JOB,
        job=_job,
        version=_amount,
        team=st.none() | _text,
        t0=_ts,
        t1=_ts,
        ett_pct=st.none() | _seconds,
        ttr_s=st.lists(_seconds, max_size=3),
        stages=_by_stage,
        labels=st.dictionaries(_text, _text, max_size=2),
    )


def _attempts(job: str) -> st.SearchStrategy[list[AttemptSummary]]:
    one = _summary(
        AttemptSummary,
        ATTEMPT | {"job": job},
        attempt=_count,
        start=_ts,
        end=_ts,
        open=st.booleans(),
        message=st.none() | _text,
        end_position=st.none() | st.integers(0, 2**80),
        effective_s=_seconds,
        stages=_by_stage,
        flags=st.lists(_text, max_size=2),
    )
    return st.lists(one, max_size=3)


def _spans(job: str) -> st.SearchStrategy[list[PhaseSpan]]:
    flag = st.booleans()
    one = st.builds(
        PhaseSpan, st.just(job), _count, phases(), _ts, _ts, _count, flag, flag, _amount, _amount, _count, _amount, flag
    )
    return st.lists(one, max_size=3)


def _keys() -> st.SearchStrategy[list[PhaseKey]]:
    return st.lists(st.builds(PhaseKey, _count, phases(), st.booleans(), _count, _ts), max_size=3)


@st.composite
def _hours(draw: st.DrawFn, job: str) -> list[Hour]:
    out = []
    for cell in draw(st.lists(st.integers(300_000, 500_000).map(lambda number: number * HOUR), max_size=3)):
        segments = []
        for _ in range(draw(st.integers(0, 3))):
            start = draw(st.integers(cell, cell + HOUR - 1))
            end = draw(st.integers(start + 1, cell + HOUR))
            segments.append(Segment(job, draw(_count), draw(phases()), start, end, draw(_count)))
        out.append(Hour(cell, segments))
    return out


@st.composite
def updates(draw: st.DrawFn) -> AttemptsUpdate | PhasesUpdate | SegmentsUpdate:
    """Updates of attempts, phases and segments."""
    job, version, whole = draw(_job), draw(_amount), draw(st.booleans())
    match draw(st.integers(0, 2)):
        case 0:
            gone = draw(st.lists(_count, max_size=3))
            return AttemptsUpdate(job, version, whole, draw(_attempts(job)), draw(_attempts(job)), gone)
        case 1:
            return PhasesUpdate(job, version, whole, draw(_spans(job)), draw(_spans(job)), draw(_keys()))
        case _:
            first, last = draw(st.just((None, None)) | st.tuples(_ts, _ts))
            return SegmentsUpdate(job, version, whole, first, last, draw(_hours(job)))


def letters() -> st.SearchStrategy[DeadLetter]:
    """Dead letters, and marks of some that were dealt with."""
    line = st.text(st.characters(categories=("L", "N", "P", "Zs")), max_size=40)
    return st.builds(
        DeadLetter,
        value=st.none() | st.binary(max_size=30),
        key=st.none() | st.binary(max_size=30),
        code=st.sampled_from(sorted(CODES)),
        reason=line,
        field=st.none() | line,
        fix=st.none() | line,
        topic=st.sampled_from(("ett.events", "other.events")),
        partition=_count,
        offset=_amount,
        index=st.none() | _count,
        time=_ts,
        job=st.none() | _job,
        handled=st.sampled_from((None, "replayed", "dropped")),
    )
