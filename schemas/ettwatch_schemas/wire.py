"""The shapes of updates on the wire: what their JSON looks like.

Phases are arrays and segments are columns, so that a job with many of them stays small.
"""

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ettwatch_schemas.fields import Amount, Count, JobName, Name, Version
from ettwatch_schemas.results import AttemptSummary

_EPOCH = "microseconds since the Unix epoch, UTC"
_Time: TypeAlias = Annotated[Amount, Field(description=_EPOCH)]
_Attempt: TypeAlias = Annotated[Count, Field(title="attempt", description="number of the attempt")]
_Phase: TypeAlias = Annotated[Name, Field(title="phase", description="dotted name")]
_Start: TypeAlias = Annotated[Amount, Field(title="start", description=_EPOCH)]
_Background: TypeAlias = Annotated[
    bool, Field(title="background", description="whether nothing waited for it: drawn, never charged")
]

PhaseRow: TypeAlias = tuple[
    _Attempt,
    _Phase,
    _Start,
    Annotated[Amount, Field(title="end", description=_EPOCH)],
    Annotated[Count, Field(title="ranks", description="how many ranks reported it")],
    _Background,
    Annotated[bool, Field(title="container", description="whether it has parts of its own, charged before it")],
    Annotated[Amount, Field(title="charged", description="microseconds charged to it")],
    Annotated[Amount, Field(title="hidden", description="microseconds in which it was open and another was charged")],
    Annotated[Count, Field(title="last_rank", description="the rank that ended last")],
    Annotated[Amount, Field(title="behind", description="microseconds by which that rank ended after the second last")],
    Annotated[bool, Field(title="open", description="whether no end of it was told")],
]
"""A phase: the fields of PhaseSpan in their order, without the job."""

KeyRow: TypeAlias = tuple[
    _Attempt,
    _Phase,
    _Background,
    Annotated[Count, Field(title="of_rank", description="the rank of a background phase; 0 for any other")],
    _Start,
]
"""The key of a phase: the fields of PhaseKey in their order."""


class _Head(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    v: Version = Field(description="version of the form")
    job: JobName = Field(description="the job")
    version: Amount = Field(description="that of the summary made at the same look: the greatest counts")


class AttemptsWire(_Head):
    """Attempts of a job that changed."""

    whole: bool = Field(description="whether `open` lists every attempt that is not final: others are gone")
    open: list[AttemptSummary] = Field(description="attempts that events may still change")
    final: list[AttemptSummary] = Field(description="attempts that no event changes any more")
    gone: list[Count] = Field(description="numbers of attempts that a correction removed")


class PhasesWire(_Head):
    """Phases of a job that changed."""

    whole: bool = Field(description="whether `open` lists every phase that is not final: others are gone")
    open: list[PhaseRow] = Field(description="phases that events may still change")
    final: list[PhaseRow] = Field(description="phases that no event changes any more")
    gone: list[KeyRow] = Field(description="keys of phases that a correction removed")


class HourWire(BaseModel):
    """All segments of one hour, by time, cut to it: columns of equal length. Empty: the job left that hour."""

    model_config = ConfigDict(strict=True, extra="ignore")

    cell: Amount = Field(description=f"begin of the hour, {_EPOCH}")
    attempt: list[Count] = Field(description="number of the attempt of each segment")
    stage: list[Name] = Field(description="what the time of each segment was charged to")
    start: list[Amount] = Field(description="begin of each segment, microseconds from the begin of the hour")
    length: list[Amount] = Field(description="length of each segment in microseconds")
    gpus: list[Count] = Field(description="GPUs held in each segment")


class SegmentsWire(_Head):
    """Hours of a job's timeline that changed."""

    whole: bool = Field(description="whether hours before `first` and after `last` are empty")
    first: _Time | None = Field(description=f"begin of the first hour with segments, {_EPOCH}; null if none has")
    last: _Time | None = Field(description=f"begin of the last hour with segments, {_EPOCH}; null if none has")
    hours: list[HourWire] = Field(description="hours that changed, as they are now")
