"""The SQL view: any question, and nothing but questions. The engine holds the limits; the text is looked at before."""

import contextlib
import json
import math
import re
import threading
import time
import uuid
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import urllib3

from ettwatch_clickhouse import EmbeddedStore, Store, StoreError
from ettwatch_clickhouse.address import Address
from ettwatch_clickhouse.errors import reason
from ettwatch_clickhouse.http.fence import Fence, Refusal
from ettwatch_clickhouse.http.lexer import Token
from ettwatch_clickhouse.http.statement import parse
from ettwatch_monitor.api.settings import Limits
from ettwatch_monitor.api.shapes import SqlAnswer, SqlColumn

__all__ = ["Asker", "EmbeddedAsker", "ServerAsker", "SqlRefused", "asker_for", "refuse"]

_VERBS: Final = frozenset({"SELECT", "WITH", "(", "DESCRIBE", "DESC", "EXPLAIN"})
_ELSEWHERE: Final = frozenset({"system", "information_schema", "default"})
_CALLS: Final = frozenset(
    {"catboostevaluate", "getserversetting", "getmacro", "serveruuid", "addresstoline", "addresstosymbol", "hostname"}
    | {
        "mergetreeindex",
        "mergetreeprojection",
        "mergetreeanalyzeindexes",
        "dictionary",
        "fqdn",
        "displayname",
        "tcpport",
    }
    | {"getserverport", "filesystemavailable", "filesystemcapacity", "filesystemunreserved", "sleep", "sleepeachrow"}
    | {"fullhostname", "getoskernelversion", "hascolumnintable", "logtrace", "showcertificate"}
    # Those that ask a model have the text go to another machine.
    | {
        f"ai{what}"
        for what in ("classify", "embed", "extract", "filter", "generate", "redact", "similarity", "translate")
    }
    | {"shownotifications", "getsetting", "currentprofiles", "enabledprofiles", "defaultprofiles", "uptime"}
)
_WHOLE: Final = re.compile(r"(Nullable\()?(LowCardinality\()?(Nullable\()?U?Int(8|16|32|64)\)*")
_SAFE: Final = 1 << 53
_ROOMS: Final = 2
"""Queries that the embedded engine answers at one time."""
_MOST_BYTES: Final = 32 << 20


class SqlRefused(Exception):
    """A query is refused, by the fence or the engine. One line that says why."""


class Asker(Protocol):
    """Asks a query that was looked at before."""

    def ask(self, query: str) -> SqlAnswer:
        """Return its answer. Raises SqlRefused."""

    def close(self) -> None:
        """End what is under way, and ask nothing more: the database is about to be closed."""


def refuse(query: str, fence: Fence) -> str:
    """Return a query as it is sent: one question, of this database.

    Raises:
        SqlRefused: It is no question, reaches out of the database, or changes the limits.
    """
    text = query.strip().rstrip(";").rstrip()
    statement = parse(text.encode("utf-8", "surrogatepass"))
    if statement.verb not in _VERBS or statement.several:
        raise SqlRefused("this is no single question; begin with SELECT, WITH, DESCRIBE or EXPLAIN")
    if statement.form is not None:
        raise SqlRefused("leave FORMAT out of the query")
    try:
        fence.check(statement, {})
    except Refusal as refusal:
        what = str(refusal).partition(" is ")[0]
        raise SqlRefused(f"{what} is not allowed here: only the tables of this database are read") from None
    for before, word in zip(statement.words, statement.words[1:], strict=False):
        _look(before, word)
    return text


def _look(before: Token, word: Token) -> None:
    if before.key == "SETTINGS" and word.kind in ("word", "quoted"):
        raise SqlRefused("leave SETTINGS out of the query: the limits hold for everybody")
    if before.kind == "quoted" and "\\" in before.text and word.text in (".", "("):
        raise SqlRefused("write names of databases and functions without backslashes")
    if before.kind not in ("word", "quoted"):
        return
    name = before.text.lower()
    if word.text == "." and word.kind == "sign" and name in _ELSEWHERE:
        raise SqlRefused(f"the database {name} is not shown here: only the tables of this one")
    if word.text == "(" and name in _CALLS:
        raise SqlRefused(f"{before.text}() is not allowed here")


def fence_of(store: Store) -> Fence:
    """Return the fence for a database. Raises StoreError."""
    return Fence(str(row[0]) for row in store.query("SELECT name FROM system.table_functions").rows)


class EmbeddedAsker:
    """Asks the embedded engine, on a handle of its own for each query.

    Raises StoreError.
    """

    def __init__(self, store: EmbeddedStore, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._fence = fence_of(store)
        self._rooms = threading.BoundedSemaphore(_ROOMS)
        self._mark = str(uuid.uuid4())
        self._closed = False

    def ask(self, query: str) -> SqlAnswer:
        """Return the answer to a query. Raises SqlRefused."""
        text = refuse(query, self._fence)
        if not self._rooms.acquire(timeout=1):
            raise SqlRefused("other queries are under way; try again in a moment")
        try:
            if self._closed:
                raise SqlRefused("the monitor ends")
            handle = self._store.handle()
            try:
                began = time.monotonic()
                handle.query("USE ettwatch", "Null")
                limits = {**_limits(self._limits), "log_comment": self._mark, "readonly": "1"}
                handle.query("SET " + ", ".join(f"{name} = '{value}'" for name, value in limits.items()), "Null")
                body = handle.query(text, "JSONCompact").bytes() or b""
                return _answer(body, self._limits.sql_rows, time.monotonic() - began)
            finally:
                handle.close()
        except SqlRefused:
            raise
        except Exception as error:  # the engine's, whose kinds have no common name
            raise SqlRefused(_told(str(error))) from None
        finally:
            self._rooms.release()

    def close(self) -> None:
        """End what is under way. An engine that is closed under a query takes the process with it."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(Exception):  # the time limit of the queries remains
            handle = self._store.handle()
            try:
                handle.query(f"KILL QUERY WHERE Settings['log_comment'] = '{self._mark}' ASYNC", "Null")
            finally:
                handle.close()
        until = time.monotonic() + self._limits.sql_s
        for _ in range(_ROOMS):  # never given back
            self._rooms.acquire(timeout=max(0.0, until - time.monotonic()))


class ServerAsker:
    """Asks a server over HTTP, read only.

    Raises StoreError.
    """

    def __init__(self, address: Address, store: Store, limits: Limits) -> None:
        self._limits = limits
        self._fence = fence_of(store)
        self._address = address
        ((readonly,),) = store.query("SELECT value FROM system.settings WHERE name = 'readonly'").rows
        # A user who may only read may change no setting, or all but this one.
        sent = {"0": {**_limits(limits), "readonly": "1"}, "2": _limits(limits)}.get(str(readonly), {})
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._url = f"{address.scheme}://{host}:{address.port}/?{urlencode(sent)}"
        tls: dict[str, Any] = {"ca_certs": address.ca} if address.ca is not None else {}
        self._pool = urllib3.PoolManager(maxsize=4, block=True, retries=False, **tls)

    def ask(self, query: str) -> SqlAnswer:
        """Return the answer to a query. Raises SqlRefused."""
        text = refuse(query, self._fence)
        address = self._address
        began = time.monotonic()
        try:
            answer = self._pool.request(
                "POST",
                self._url,
                body=f"{text}\nFORMAT JSONCompact".encode("utf-8", "surrogatepass"),
                headers={
                    "X-ClickHouse-User": address.user,
                    "X-ClickHouse-Key": address.password,
                    "X-ClickHouse-Database": address.database,
                },
                timeout=urllib3.Timeout(connect=5, read=self._limits.sql_s + 5),
                preload_content=False,
                redirect=False,
            )
            body = answer.read(_MOST_BYTES + 1, decode_content=True)
            answer.release_conn()
        except urllib3.exceptions.HTTPError:
            raise SqlRefused("the database does not answer now; try again in a moment") from None
        if answer.status != 200:
            raise SqlRefused(_told(body.decode("utf-8", "replace")))
        if len(body) > _MOST_BYTES:
            raise SqlRefused("the answer is too large; ask for fewer rows or columns")
        return _answer(body, self._limits.sql_rows, time.monotonic() - began)

    def close(self) -> None:
        """Let go of the connections; the server ends what nobody waits for."""
        self._pool.clear()


def asker_for(store: Store, address: Address | None, limits: Limits) -> Asker:
    """Return who asks the database of a store. Raises StoreError."""
    if isinstance(store, EmbeddedStore):
        return EmbeddedAsker(store, limits)
    if address is None:
        raise StoreError("the SQL view needs the address of the database")
    return ServerAsker(address, store, limits)


def _limits(limits: Limits) -> dict[str, str]:
    return {
        "max_execution_time": f"{limits.sql_s:g}",
        "timeout_overflow_mode": "throw",
        "max_memory_usage": str(limits.sql_bytes),
        "max_result_rows": str(limits.sql_rows + 1),
        "max_result_bytes": str(_MOST_BYTES),
        "result_overflow_mode": "break",
        "max_threads": "2",
        "max_ast_depth": "500",
        "max_query_size": "65536",
        "output_format_json_quote_64bit_integers": "1",
        "output_format_json_quote_denormals": "0",
        "date_time_output_format": "iso",
        "allow_introspection_functions": "0",
        "allow_ddl": "0",
    }


def _answer(body: bytes, most: int, elapsed_s: float) -> SqlAnswer:
    try:
        told = json.loads(body) if body.strip() else {"meta": [], "data": []}
        columns = [SqlColumn(name=str(one["name"]), type=str(one["type"])) for one in told["meta"]]
        rows = told["data"]
    except (ValueError, KeyError, TypeError):
        raise SqlRefused("the engine ended the answer in the middle; ask for less") from None
    whole = [_WHOLE.fullmatch(column.type) is not None for column in columns]
    return SqlAnswer(
        columns=columns,
        rows=[[_value(value, number) for value, number in zip(row, whole, strict=True)] for row in rows[:most]],
        truncated=len(rows) > most,
        elapsed_s=round(elapsed_s, 4),
    )


def _value(value: object, whole: bool) -> object:
    if whole and isinstance(value, str):
        number = int(value)
        return number if -_SAFE < number < _SAFE else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _told(message: str) -> str:
    """What the engine says, without where its files are."""
    return re.sub(r"(?<![\w.])/[\w./-]{3,}", "…", reason(message))
