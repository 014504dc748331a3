"""A Store over a ClickHouse server, or over the HTTP front of an `ettwatch up`, by its address."""

from ettwatch_clickhouse.address import Address, connect_to
from ettwatch_clickhouse.store import Store

__all__ = ["connect"]


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
    address = Address.parse(url)
    return connect_to(address, create=create, connect_timeout_s=connect_timeout_s, timeout_s=timeout_s)
