"""A Store over a ClickHouse server, or over the HTTP front of an `ettwatch up`."""

import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError

from ettwatch_clickhouse.client import ClientStore
from ettwatch_clickhouse.errors import StoreError, code_of, store_error
from ettwatch_clickhouse.store import Store

__all__ = ["DATABASE", "connect"]

DATABASE: Final = "ettwatch"
"""The database, where none is named."""

_UNKNOWN_DATABASE: Final = 81
_PORTS: Final = {"http": 8123, "https": 8443}


def connect(url: str, *, create: bool = True, connect_timeout_s: int = 10, timeout_s: int = 300) -> Store:
    """Connect to a ClickHouse server over HTTP.

    Args:
        url: ``http://user:password@host:8123/database``; the database is ``ettwatch`` where none is named.
        create: Create the database where it is missing.
        connect_timeout_s: Longest wait for the connection, in seconds.
        timeout_s: Longest wait for an answer, in seconds.

    Raises:
        StoreUnavailable: Nothing answers there.
        StoreError: The address is malformed, or the server refuses.
    """
    parts = urlsplit(url)
    database = unquote(parts.path.strip("/")) or DATABASE
    try:
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        port = 0
    if not port or not parts.hostname or parts.scheme not in _PORTS or not re.fullmatch(r"\w+", database):
        raise StoreError(
            f"{_hidden(url)!r} is no address of a ClickHouse; give one such as http://user:password@host:8123/ettwatch"
        )
    where = f"{parts.scheme}://{parts.hostname}:{port}/{database}"
    options: dict[str, Any] = {
        "interface": parts.scheme,
        "host": parts.hostname,
        "port": port,
        "username": unquote(parts.username) if parts.username else "default",
        "password": unquote(parts.password or ""),
        "connect_timeout": connect_timeout_s,
        "send_receive_timeout": timeout_s,
        "query_retries": 0,  # who asks decides what is worth a repetition
        "autogenerate_session_id": False,  # a session allows one query at a time
        "tz_mode": "aware",
    }
    try:
        return ClientStore(_client(options, database, create), where)
    except ClickHouseError as e:
        message = str(e)
        code = getattr(e, "code", None) or code_of(message)
        away = code is None and isinstance(e, OperationalError)
        raise store_error("connect", where, message, code=code, away=away) from e


def _client(options: dict[str, Any], database: str, create: bool) -> Client:
    try:
        return clickhouse_connect.get_client(**options, database=database)
    except ClickHouseError as e:
        code = getattr(e, "code", None) or code_of(str(e))
        if code != _UNKNOWN_DATABASE or not create:
            raise
    maker = clickhouse_connect.get_client(**options, database="default")
    try:
        maker.command(f"CREATE DATABASE IF NOT EXISTS {database}")
    finally:
        maker.close()
    return clickhouse_connect.get_client(**options, database=database)


def _hidden(url: str) -> str:
    """Leave the password out of a message."""
    return re.sub(r"//[^/@]*@", "//...@", url)
