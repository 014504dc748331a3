"""Timelines for other tools: OpenTelemetry spans and CloudEvents. What posts them is in `post`, which needs urllib3."""

from ettwatch_sources.export.cloudevents import BATCH_TYPE, event_of, job_event
from ettwatch_sources.export.otlp import request_of, span_count

__all__ = ["BATCH_TYPE", "event_of", "job_event", "request_of", "span_count"]
