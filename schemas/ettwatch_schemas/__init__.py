"""The wire format of ettwatch: events, the phase taxonomy, summaries.

Everything public is importable from here.
"""

from ettwatch_schemas.decode import Decoded, decode_event, decode_message
from ettwatch_schemas.encode import encode_event
from ettwatch_schemas.errors import CODES, DecodeError, UpdateError
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
from ettwatch_schemas.letters import DeadLetter, letter_headers, read_letter
from ettwatch_schemas.limits import MAX_EVENT_BYTES, MAX_MESSAGE_BYTES
from ettwatch_schemas.pack import decode_attempts, decode_phases, decode_segments, decode_summary, encode_update
from ettwatch_schemas.published import examples, topic_examples
from ettwatch_schemas.results import AttemptSummary, JobSummary, PhaseSpan, Segment, Status
from ettwatch_schemas.taxonomy import COMPONENTS, EFFECTIVE, STAGES, component_of, is_phase
from ettwatch_schemas.times import MAX_TS, MIN_TS
from ettwatch_schemas.updates import AttemptsUpdate, Columns, Hour, PhaseKey, PhasesUpdate, SegmentsUpdate, Update
from ettwatch_schemas.windows import Scope, Window, decode_window, encode_window

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
    "AttemptsUpdate",
    "BaseEvent",
    "Cause",
    "CheckpointDurable",
    "Columns",
    "DeadLetter",
    "DecodeError",
    "Decoded",
    "Event",
    "Heartbeat",
    "Hour",
    "JobEnded",
    "JobSubmitted",
    "JobSummary",
    "Outcome",
    "PhaseEnded",
    "PhaseKey",
    "PhaseSpan",
    "PhaseStarted",
    "PhasesUpdate",
    "Progress",
    "Scope",
    "Segment",
    "SegmentsUpdate",
    "Source",
    "Status",
    "TrainingEnded",
    "TrainingStarted",
    "Trigger",
    "Update",
    "UpdateError",
    "Window",
    "component_of",
    "decode_attempts",
    "decode_event",
    "decode_message",
    "decode_phases",
    "decode_segments",
    "decode_summary",
    "decode_window",
    "encode_event",
    "encode_update",
    "encode_window",
    "examples",
    "is_phase",
    "letter_headers",
    "read_letter",
    "topic_examples",
]
