"""Timelines for other tools: OpenTelemetry spans and CloudEvents. What posts them is in `post`,
which needs urllib3, OTLP's binary encoding in `protobuf`, which needs opentelemetry-proto."""

from ettwatch_sources.export.cloudevents import BATCH_TYPE, event_of, job_event
from ettwatch_sources.export.otlp import parts_of, rejected, request_of, span_count

__all__ = ["BATCH_TYPE", "event_of", "job_event", "parts_of", "rejected", "request_of", "span_count"]
