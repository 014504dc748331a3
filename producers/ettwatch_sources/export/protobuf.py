"""OTLP's binary encoding, for receivers that take no JSON. Needs opentelemetry-proto (extra `otlp`).

The messages are made from the JSON encoding by protobuf's own rules, which differ in one thing: there ids are base64.
"""

import base64
from typing import Any, Final

from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PROTOBUF_TYPE: Final = "application/x-protobuf"
"""The content type of a request."""

_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})


def encode_request(request: dict[str, Any]) -> bytes:
    """Return a request of `otlp.request_of` as bytes."""
    spans = [
        {
            "resource": part["resource"],
            "scopeSpans": [
                {**scope, "spans": [_span(span) for span in scope["spans"]]} for scope in part["scopeSpans"]
            ],
        }
        for part in request["resourceSpans"]
    ]
    message: bytes = ParseDict({"resourceSpans": spans}, ExportTraceServiceRequest()).SerializeToString()
    return message


def rejected(answer: bytes) -> tuple[int, str]:
    """Return how many spans the receiver rejected, and why. An answer that is no message rejects nothing."""
    try:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return 0, ""
    return partial.rejected_spans, partial.error_message


def _span(span: dict[str, Any]) -> dict[str, Any]:
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode() if key in _IDS else value for key, value in span.items()
    }
