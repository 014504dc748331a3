"""The wire format of ettwatch: events, the phase taxonomy, summaries.

Everything public is importable from here.
"""

from ettwatch_schemas.decode import Decoded, decode_event, decode_message
from ettwatch_schemas.encode import encode_event
from ettwatch_schemas.errors import CODES, DecodeError
from ettwatch_schemas.events import (
    EVENT_TYPES,
    KINDS,
    AttemptEnded,
    AttemptStarted,
    BaseEvent,
    CheckpointDurable,
    Event,
    Heartbeat,
    JobEnded,
    JobSubmitted,
    PhaseEnded,
    PhaseStarted,
    Progress,
    TrainingEnded,
    TrainingStarted,
)
from ettwatch_schemas.fields import Cause, Outcome, Source, Trigger
from ettwatch_schemas.limits import MAX_EVENT_BYTES, MAX_MESSAGE_BYTES
from ettwatch_schemas.published import examples
from ettwatch_schemas.results import AttemptSummary, JobSummary, PhaseSpan, Segment, Status
from ettwatch_schemas.taxonomy import COMPONENTS, EFFECTIVE, STAGES, component_of, is_phase
from ettwatch_schemas.times import MAX_TS, MIN_TS

__all__ = [
    "CODES",
    "COMPONENTS",
    "EFFECTIVE",
    "EVENT_TYPES",
    "KINDS",
    "MAX_EVENT_BYTES",
    "MAX_MESSAGE_BYTES",
    "MAX_TS",
    "MIN_TS",
    "STAGES",
    "AttemptEnded",
    "AttemptStarted",
    "AttemptSummary",
    "BaseEvent",
    "Cause",
    "CheckpointDurable",
    "DecodeError",
    "Decoded",
    "Event",
    "Heartbeat",
    "JobEnded",
    "JobSubmitted",
    "JobSummary",
    "Outcome",
    "PhaseEnded",
    "PhaseSpan",
    "PhaseStarted",
    "Progress",
    "Segment",
    "Source",
    "Status",
    "TrainingEnded",
    "TrainingStarted",
    "Trigger",
    "component_of",
    "decode_event",
    "decode_message",
    "encode_event",
    "examples",
    "is_phase",
]
