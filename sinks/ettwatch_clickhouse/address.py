"""Where a ClickHouse server is, who asks, and whose certificates are trusted; and the way there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import quote, unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError

from ettwatch_clickhouse.client import ClientStore
from ettwatch_clickhouse.errors import StoreError, code_of, store_error
from ettwatch_clickhouse.store import Store

__all__ = ["DATABASE", "DISTRIBUTED", "Address", "connect_to"]

DATABASE: Final = "ettwatch"
"""The database, where none is named."""

DISTRIBUTED: Final[Mapping[str, object]] = {
    # An acknowledged insert is on its shard, not in a queue of the server that took it in.
    "distributed_foreground_insert": 1,
    # A query on a distributed table inside another one means all shards, too.
    "distributed_product_mode": "global",
}
"""Settings for whoever writes into a cluster; on a single server they change nothing."""

_PORTS: Final = {"http": 8123, "https": 8443}
_UNKNOWN_DATABASE: Final = 81
_DENIED: Final = 497


@dataclass(frozen=True, slots=True)
class Address:
    """A database of a ClickHouse server.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Name or number.
        port: Of its HTTP interface.
        database: A plain name.
        user: As whom to ask.
        password: With what; not shown.
        ca: File with the certificates to trust; None for those of the system.
    """

    scheme: str
    host: str
    port: int
    database: str = DATABASE
    user: str = "default"
    password: str = field(default="", repr=False)
    ca: str | None = None

    @classmethod
    def parse(cls, url: str, *, password: str | None = None, ca: str | None = None) -> Self:
        """Read an address such as ``https://user@host:8443/ettwatch``.

        Args:
            url: The port is 8123 or 8443, the user ``default`` and the database ``ettwatch`` where none is named.
            password: Instead of the one in the address.
            ca: File with the certificates to trust.

        Raises:
            StoreError: It is malformed.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            raise _malformed(url) from None
        database = unquote(parts.path.strip("/")) or DATABASE
        whole = not parts.query and not parts.fragment
        if not port or not parts.hostname or parts.scheme not in _PORTS or not whole:
            raise _malformed(url)
        if "/" in database:
            raise _malformed(url)
        if not re.fullmatch(r"[A-Za-z_]\w{0,63}", database, re.ASCII):
            raise StoreError(f"{database!r} is no name of a database; it is made of letters, digits and _")
        if ca is not None and parts.scheme != "https":
            raise StoreError(
                f"a file of certificates is given, but {parts.scheme}://{parts.hostname}:{port} is not encrypted; "
                "write https:// in the address, or leave the file out"
            )
        told = unquote(parts.password or "") if password is None else password
        user = unquote(parts.username) if parts.username else "default"
        return cls(parts.scheme, parts.hostname, port, database, user, told, ca)

    @property
    def where(self) -> str:
        """The address for messages: no user, no password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/{quote(self.database)}"


def connect_to(
    address: Address,
    *,
    create: bool = False,
    settings: Mapping[str, object] | None = None,
    connect_timeout_s: int = 10,
    timeout_s: int = 300,
) -> Store:
    """Connect to a ClickHouse server over HTTP.

    Args:
        address: The database.
        create: Create the database where it is missing.
        settings: ClickHouse's settings for every call.
        connect_timeout_s: Longest wait for the connection, in seconds.
        timeout_s: Longest wait for an answer, in seconds.

    Raises:
        StoreUnavailable: Nothing answers there.
        StoreError: The server refuses, or its certificate is not trusted.
    """
    options: dict[str, Any] = {
        "interface": address.scheme,
        "host": address.host,
        "port": address.port,
        "username": address.user,
        "password": address.password,
        "settings": dict(settings or {}),
        "connect_timeout": connect_timeout_s,
        "send_receive_timeout": timeout_s,
        "query_retries": 0,  # who asks decides what is worth a repetition
        "autogenerate_session_id": False,  # a session allows one query at a time
        "tz_mode": "aware",
    }
    if address.ca is not None:
        options["ca_cert"] = address.ca
    try:
        return ClientStore(_client(options, address.database, create), address.where)
    except ClickHouseError as e:
        raise _refused(address, e) from e


def _client(options: dict[str, Any], database: str, create: bool) -> Client:
    try:
        return clickhouse_connect.get_client(**options, database=database)
    except ClickHouseError as e:
        if not create or _code(e) != _UNKNOWN_DATABASE:
            raise
    maker = clickhouse_connect.get_client(**options, database="default")
    try:
        maker.command(f"CREATE DATABASE IF NOT EXISTS {database}")
    finally:
        maker.close()
    return clickhouse_connect.get_client(**options, database=database)


def _code(error: ClickHouseError) -> int | None:
    code = getattr(error, "code", None) or code_of(str(error))
    return int(code) if code else None


def _refused(address: Address, error: ClickHouseError) -> StoreError:
    message, code = str(error), _code(error)
    if code == _DENIED and "CREATE DATABASE" in message:
        return StoreError(
            f"the database {address.database} is missing at {address.where}, and user {address.user!r} may not create "
            "it; let somebody create it who may, or grant CREATE DATABASE",
            code,
        )
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return StoreError(
            f"cannot connect at {address.where}: its certificate is not trusted; name the file with the certificates "
            "that sign it in ETTWATCH_CLICKHOUSE_CA"
        )
    if "WRONG_VERSION_NUMBER" in message:
        return StoreError(f"cannot connect at {address.where}: no encryption is spoken there; check scheme and port")
    away = code is None and isinstance(error, OperationalError)
    return store_error("connect", address.where, message, code=code, away=away)


def _malformed(url: str) -> StoreError:
    shown = re.sub(r"//.*@", "//...@", url)
    return StoreError(f"{shown!r} is no address of a ClickHouse; give one such as https://user@host:8443/ettwatch")
