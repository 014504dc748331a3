"""What is already there: schedulers and other tools' logs, as events.

`Import` reads one file of a kind in `KIND_NAMES`; the watchers of `ettwatch_sources.watch` follow a cluster; what is in
`ettwatch_sources.export` takes timelines to other tools.
"""

from ettwatch_sources.feed import Doubts, Options, Refusal
from ettwatch_sources.flags import FLAGS
from ettwatch_sources.importing import Import, Report
from ettwatch_sources.journal import Journal
from ettwatch_sources.kinds import Kind
from ettwatch_sources.mapping import MappingError, parse_mapping
from ettwatch_sources.registry import HEAD, KIND_NAMES, kind_of
from ettwatch_sources.sinks import Sink, SpoolSink, StreamSink
from ettwatch_sources.told import Refused, Told, line_of
from ettwatch_sources.walking import Found, walk

__all__ = [
    "FLAGS",
    "HEAD",
    "KIND_NAMES",
    "Doubts",
    "Found",
    "Import",
    "Journal",
    "Kind",
    "MappingError",
    "Options",
    "Refusal",
    "Refused",
    "Report",
    "Sink",
    "SpoolSink",
    "StreamSink",
    "Told",
    "kind_of",
    "line_of",
    "parse_mapping",
    "walk",
]
