"""Running statements on the embedded engine: a handle for each request or session, under the limits of the front."""

import contextlib
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ettwatch_clickhouse.address import DATABASE
from ettwatch_clickhouse.embedded import EmbeddedStore
from ettwatch_clickhouse.http.fence import Fence, Refusal
from ettwatch_clickhouse.http.query import Query
from ettwatch_clickhouse.http.watch import while_there

__all__ = ["Answer", "Engine"]

_STREAM_SAFE: Final = frozenset({"native", "tabseparated", "tsv", "csv", "rowbinary", "jsoneachrow"})
"""Formats of which parts follow each other without a header or an end."""

_MOST_SESSIONS: Final = 100
_LONGEST_SESSION_S: Final = 3_600
_READS: Final = frozenset(
    {"SELECT", "WITH", "(", "FROM", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN", "SET", "USE"}
)
_UNHEEDED: Final = frozenset({"KILL", "UNDROP"})
"""Statements that the engine runs in spite of `readonly`: with its one user, every query is one's own."""
_SETTING: Final = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement gave.

    Attributes:
        form: The format of the body; None if the statement has no answer.
        pieces: The body.
        summary: Figures for ``X-ClickHouse-Summary``; known only where the body is whole.
        whole: The body is one piece.
    """

    form: str | None
    pieces: Iterator[bytes]
    summary: dict[str, str]
    whole: bool


class _Session:
    """A handle on the engine, and what the last request set on it."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.lock = threading.Lock()
        self.expires = 0.0
        self._set: dict[str, str] = {}

    def set(self, settings: dict[str, str]) -> None:
        """Set what a request asks for, and take back what the one before asked for."""
        wanted = {name: _quoted(value) for name, value in settings.items()}
        changes = [f"{name} = DEFAULT" for name in self._set if name not in wanted]
        changes += [f"{name} = {value}" for name, value in wanted.items() if self._set.get(name) != value]
        self._set = wanted
        if changes:
            try:
                self.handle.query(f"SET {', '.join(changes)}", "Null")
            except BaseException:
                self._set = dict.fromkeys(wanted, "")  # some may have been set
                raise


class Engine:
    """Runs statements.

    Args:
        store: The embedded engine.
        readonly: Refuse every change.
        query_s: Longest time of a statement, in seconds.
        query_bytes: Most memory of a statement.
        monotonic: A clock in seconds, for sessions.
    """

    def __init__(
        self,
        store: EmbeddedStore,
        *,
        readonly: bool,
        query_s: float,
        query_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._readonly = readonly
        self._query_s = query_s
        self._query_bytes = query_bytes
        self._closed = False
        self._monotonic = monotonic
        self._sessions: dict[str, _Session] = {}
        self._sessions_lock = threading.Lock()
        self._fence = Fence(str(row[0]) for row in store.query("SELECT name FROM system.table_functions").rows)
        self.version = str(store.query("SELECT version()").rows[0][0])

    @contextmanager
    def run(self, query: Query, *, changes: bool, client: socket.socket | None = None) -> Iterator[Answer]:
        """Run a statement; its answer is to be read before the block is left.

        Args:
            query: The statement and what belongs to it.
            changes: The request may change something.
            client: Who asks; if it hangs up, the statement is cancelled.

        Raises:
            Refusal: The front refuses it.
            Exception: The engine's error, with its message.
        """
        self._fence.check(query.statement, query.params)
        with ExitStack() as stack:
            session = self._open(query, stack)
            mark = f"{uuid.uuid4()} {query.settings.get('log_comment', '')}".strip()
            self._prepare(session, query, changes, mark)
            if client is not None:
                stack.enter_context(while_there(client, lambda: self._cancel(mark)))
            yield self._execute(session.handle, query, stack)

    def close(self) -> None:
        """Close the sessions."""
        self._closed = True
        with self._sessions_lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            with session.lock:
                session.handle.close()

    def _cancel(self, mark: str) -> None:
        """Cancel the statement that bears a mark: the engine tells its id to nobody."""
        if self._closed:
            return
        with contextlib.suppress(Exception):  # the time limit remains
            handle = self._store.handle()
            try:
                handle.query(f"KILL QUERY WHERE Settings['log_comment'] = {_quoted(mark)} ASYNC", "Null")
            finally:
                handle.close()

    def _open(self, query: Query, stack: ExitStack) -> _Session:
        name = query.params.get("session_id")
        if not name:
            session = self._fresh()
            stack.callback(session.handle.close)
            return session
        session = self._session(name, query)
        if not session.lock.acquire(blocking=False):
            raise Refusal(373, "SESSION_IS_LOCKED", f"Session {name} is locked by a concurrent client")
        stack.callback(session.lock.release)
        return session

    def _fresh(self) -> _Session:
        handle = self._store.handle()
        _use(handle, DATABASE)
        return _Session(handle)

    def _session(self, name: str, query: Query) -> _Session:
        try:
            lasts = min(float(query.params.get("session_timeout", "60")), _LONGEST_SESSION_S)
        except ValueError:
            raise Refusal(374, "INVALID_SESSION_TIMEOUT", "Invalid session timeout: give a number of seconds") from None
        now = self._monotonic()
        with self._sessions_lock:
            for old in [key for key, kept in self._sessions.items() if kept.expires < now and not kept.lock.locked()]:
                self._sessions.pop(old).handle.close()
            session = self._sessions.get(name)
            if session is None:
                if query.flag("session_check"):
                    raise Refusal(372, "SESSION_NOT_FOUND", f"Session {name} not found")
                if len(self._sessions) >= _MOST_SESSIONS:
                    raise Refusal(202, "TOO_MANY_SIMULTANEOUS_QUERIES", f"more than {_MOST_SESSIONS} sessions are open")
                session = self._sessions[name] = self._fresh()
            session.expires = now + lasts
            return session

    def _prepare(self, session: _Session, query: Query, changes: bool, mark: str) -> None:
        database = query.params.get("database")
        if database:
            # The engine's own database of the name "default" holds the files of the machine.
            _use(session.handle, DATABASE if database == "default" else database)
        settings = {"async_insert": "0", **query.settings, "log_comment": mark}
        settings["max_memory_usage"] = _bounded_bytes(settings.get("max_memory_usage"), self._query_bytes)
        settings["max_execution_time"] = _bounded(settings.get("max_execution_time"), self._query_s)
        for name in settings:
            if not _SETTING.fullmatch(name):
                raise Refusal(115, "UNKNOWN_SETTING", f"Unknown setting '{name}'")
        session.set(settings)
        if changes and not self._readonly and query.params.get("readonly", "0") == "0":
            return
        # The engine could never be told to allow changes again; and it does not ask before a streamed insert.
        alone = "session_id" in query.params or query.data is not None
        if not query.statement.verbs.isdisjoint(_UNHEEDED) or (alone and query.statement.verb not in _READS):
            raise Refusal(164, "READONLY", "Cannot execute query in readonly mode")
        if alone:
            return
        session.handle.query(f"SET readonly = {1 if query.params.get('readonly') == '1' else 2}", "Null")

    def _execute(self, handle: Any, query: Query, stack: ExitStack) -> Answer:
        statement = query.statement
        if query.data is not None and statement.form is not None:
            return self._insert(handle, query, statement.form)
        form = statement.form or query.params.get("default_format") or "TabSeparated"
        if statement.selects and form.lower() in _STREAM_SAFE and not query.flag("wait_end_of_query"):
            stream = handle.send_query(statement.sql, form, params=query.values)
            stack.callback(stream.close)
            return Answer(form, _first_at_once(piece.bytes() for piece in stream), {}, False)
        result = handle.query(statement.sql, form, params=query.values)
        data = result.bytes() or b""
        return Answer(form if data or statement.selects else None, iter((data,)), _figures(result), True)

    def _insert(self, handle: Any, query: Query, form: str) -> Answer:
        assert query.data is not None
        inserter = handle.send_insert(query.statement.sql, form)
        try:
            for piece in query.data:
                if piece:
                    inserter.append(piece)
        except BaseException:
            inserter.cancel()
            raise
        done = inserter.finish()
        figures = {"written_rows": str(done.rows_written), "written_bytes": str(done.bytes_written)}
        return Answer(None, iter((b"",)), figures, True)


def _use(handle: Any, database: str) -> None:
    handle.query("USE `{}`".format(database.replace("\\", "\\\\").replace("`", "\\`")), "Null")


def new_query_id() -> str:
    """Return an id for a query that brings none."""
    return str(uuid.uuid4())


def _first_at_once(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Wait for the first piece: most errors come before it, while the status can still tell them."""
    first = next(pieces, b"")

    def rest() -> Iterator[bytes]:
        yield first
        yield from pieces

    return rest()


def _figures(result: Any) -> dict[str, str]:
    return {
        "read_rows": str(result.storage_rows_read()),
        "read_bytes": str(result.storage_bytes_read()),
        "result_rows": str(result.rows_read()),
        "elapsed_ns": str(int(result.elapsed() * 1e9)),
    }


def _bounded(wanted: str | None, limit: float) -> str:
    try:
        seconds = float(wanted or 0)
    except ValueError:
        return str(wanted)  # the engine says what is wrong with it
    return f"{min(seconds, limit) if seconds > 0 else limit:g}"


def _bounded_bytes(wanted: str | None, limit: int) -> str:
    if not wanted:
        return str(limit)
    if not (wanted.isascii() and wanted.isdigit()):
        raise Refusal(72, "CANNOT_PARSE_NUMBER", f"max_memory_usage {wanted!r} is no number of bytes")
    return str(min(int(wanted) or limit, limit))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
