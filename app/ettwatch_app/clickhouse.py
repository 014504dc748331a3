"""How the ClickHouse server is reached: address, login, certificates, from a few variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from ettwatch_clickhouse import Store
    from ettwatch_clickhouse.address import Address

__all__ = ["CLICKHOUSE_VARIABLES", "ClickHouseAccess", "ClickHouseSettingError"]

CLICKHOUSE_VARIABLES: Final[Mapping[str, str]] = {
    "ETTWATCH_CLICKHOUSE": "the ClickHouse server, http[s]://user@host:port/database",
    "ETTWATCH_CLICKHOUSE_PASSWORD": "password of that user",
    "ETTWATCH_CLICKHOUSE_PASSWORD_FILE": "file with the password, instead of it",
    "ETTWATCH_CLICKHOUSE_CA": "file with the certificates that sign that of the server",
    "ETTWATCH_CLUSTER": "name of the ClickHouse cluster, for `ettwatch migrate`",
}
"""Every variable that says how ClickHouse is reached and laid out."""


class ClickHouseSettingError(Exception):
    """A setting is wrong. One line that says which, and what to do; no secret is in it."""


@dataclass(frozen=True, slots=True)
class ClickHouseAccess:
    """Where the ClickHouse server is, and how to get in. The password is not shown.

    Attributes:
        address: The database there.
    """

    address: "Address"

    @classmethod
    def read(cls, env: Mapping[str, str], url: str | None = None) -> Self:
        """Read it from the variables; `url` overrules ETTWATCH_CLICKHOUSE.

        A password of the variables overrules one in the address. Raises ClickHouseSettingError.
        """
        from ettwatch_clickhouse import StoreError
        from ettwatch_clickhouse.address import Address

        told = (url if url is not None else env.get("ETTWATCH_CLICKHOUSE", "")).strip()
        if not told:
            raise ClickHouseSettingError(
                "no ClickHouse is named; give --clickhouse http://user@host:8123/ettwatch, or set ETTWATCH_CLICKHOUSE"
            )
        ca = env.get("ETTWATCH_CLICKHOUSE_CA") or None
        if ca is not None:
            _text_of("ETTWATCH_CLICKHOUSE_CA", ca)
        try:
            return cls(Address.parse(told, password=_password(env), ca=ca))
        except StoreError as error:
            raise ClickHouseSettingError(str(error)) from None

    @property
    def where(self) -> str:
        """The address for messages: without user and password."""
        return self.address.where

    def connect(self, *, create: bool = False, timeout_s: int = 300) -> "Store":
        """Connect to the database.

        Args:
            create: Create the database where it is missing.
            timeout_s: Longest wait for an answer, in seconds.

        Raises StoreUnavailable where nothing answers, StoreError where the server refuses.
        """
        from ettwatch_clickhouse.address import DISTRIBUTED, connect_to

        return connect_to(self.address, create=create, settings=DISTRIBUTED, timeout_s=timeout_s)


def _password(env: Mapping[str, str]) -> str | None:
    file = env.get("ETTWATCH_CLICKHOUSE_PASSWORD_FILE")
    if file:
        return _text_of("ETTWATCH_CLICKHOUSE_PASSWORD_FILE", file).rstrip("\r\n")
    return env.get("ETTWATCH_CLICKHOUSE_PASSWORD") or None


def _text_of(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is no text"
        raise ClickHouseSettingError(f"cannot read {file}: {why}; correct {name}") from None
