"""A request as the engine needs it: the statement, its inserted data, its parameters and settings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from itertools import chain
from typing import Final
from urllib.parse import parse_qsl

from ettwatch_clickhouse.http.body import Body
from ettwatch_clickhouse.http.fence import Refusal
from ettwatch_clickhouse.http.statement import Statement, parse

__all__ = ["Query", "read_query"]

_HEAD: Final = 1 << 18
"""Bytes in which an INSERT must have come to its data."""

_TEXT: Final = 256 << 20
"""Most bytes of a statement without separate data."""

_TRANSPORT: Final = frozenset(
    {"query", "database", "default_format", "user", "password", "query_id", "quota_key", "role", "compress"}
    | {"decompress", "enable_http_compression", "http_zlib_compression_level", "wait_end_of_query", "buffer_size"}
    | {"session_id", "session_timeout", "session_check", "close_session", "client_protocol_version", "stacktrace"}
    | {"send_progress_in_http_headers", "http_headers_progress_interval_ms", "add_http_cors_header", "readonly"}
    | {"cancel_http_readonly_queries_on_client_close", "http_write_exception_in_output_format"}
)


@dataclass(frozen=True, slots=True)
class Query:
    """One statement to run.

    Attributes:
        statement: The statement.
        data: Data to insert, as far as they are not part of the statement.
        params: All parameters of the request.
    """

    statement: Statement
    data: Iterator[bytes] | None
    params: Mapping[str, str]

    @property
    def values(self) -> dict[str, str]:
        """Values for the places in the statement."""
        return {name[6:]: value for name, value in self.params.items() if name.startswith("param_")}

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the engine."""
        return {
            name: value
            for name, value in self.params.items()
            if name not in _TRANSPORT and not name.startswith("param_")
        }

    def flag(self, name: str) -> bool:
        """Whether a parameter is switched on."""
        return self.params.get(name, "0").lower() not in ("0", "", "false")


def read_query(url_query: str, headers: Message, body: Body) -> Query:
    """Read the statement of a request; of inserted data only the beginning.

    Raises:
        Refusal: It is too large, or asks for what is not supported here.
    """
    params = dict(parse_qsl(url_query, keep_blank_values=True))
    for name, header in (("database", "X-ClickHouse-Database"), ("default_format", "X-ClickHouse-Format")):
        if header in headers:
            params.setdefault(name, headers[header])
    pieces = iter(body)
    kind = headers.get("Content-Type") or ""
    if kind.startswith("multipart/form-data"):
        params |= _fields(kind, _all(pieces, _TEXT))
        pieces = iter(())
    for name in ("compress", "decompress"):
        if params.get(name, "0") not in ("0", ""):
            raise Refusal(
                48, "NOT_IMPLEMENTED", f"{name}=1 is not supported here; use Content-Encoding and Accept-Encoding"
            )
    text = params["query"].encode("utf-8", "surrogateescape") + b"\n" if params.get("query") else b""
    statement = parse(text)
    if statement.data is not None:
        return Query(statement, chain([text[statement.data :]], pieces), params)
    text += _some(pieces, _HEAD)
    statement = parse(text)
    if statement.data is not None:
        return Query(statement, chain([text[statement.data :]], pieces), params)
    rest = _all(pieces, _TEXT)
    return Query(parse(text + rest) if rest else statement, None, params)


def _some(pieces: Iterator[bytes], enough: int) -> bytes:
    read = bytearray()
    for piece in pieces:
        read += piece
        if len(read) >= enough:
            break
    return bytes(read)


def _all(pieces: Iterator[bytes], most: int) -> bytes:
    read = bytearray()
    for piece in pieces:
        read += piece
        if len(read) > most:
            raise Refusal(229, "QUERY_IS_TOO_LARGE", f"the statement is larger than {most} bytes; insert with FORMAT")
    return bytes(read)


def _fields(kind: str, body: bytes) -> dict[str, str]:
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode("latin-1") + body)
    fields = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        if part.get_filename() is not None or not isinstance(name, str):
            raise Refusal(48, "NOT_IMPLEMENTED", "external tables are not supported here; insert the data instead")
        content = part.get_payload(decode=True)
        fields[name] = content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else ""
    return fields
