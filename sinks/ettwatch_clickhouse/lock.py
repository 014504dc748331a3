"""One migration at a time, on one server or a cluster, also if one of them dies in the middle.

Who wants the lock creates a table of its own, `schema_lock_…`, and then looks which others there are: with none, it has
the lock; else it drops its table and waits. Of two that come at once the later one to look sees the other, so never do
both go on. Who holds the lock changes the comment of its table all the time. A table whose comment has stood still for
as long as somebody watched it, by the watcher's own clock, belongs to a process that is gone: the watcher drops it. Its
owner, should it live after all, finds that out before its next statement, and stops.
"""

import contextlib
import json
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ettwatch_clickhouse.cluster import Cluster
from ettwatch_clickhouse.errors import StoreError
from ettwatch_clickhouse.store import Store

__all__ = ["LIMIT_S", "LOCK", "MigrationLock"]

LOCK: Final = "schema_lock_"
"""What the names of the tables begin with."""

LIMIT_S: Final = 60.0
"""A lock that has not moved for so long is taken over, in seconds."""

_LOOK_S: Final = 0.5
_COMMENT: Final = "lock of ettwatch migrate: "


class MigrationLock:
    """A context manager: within it, no other migration of this database runs.

    Args:
        store: The database; called from a second thread as well.
        cluster: The layout, if the database is on a cluster.
        limit_s: A lock that has not moved for so long is taken over, in seconds.
        wait_s: How long to wait for a living owner, in seconds.
        said: Called once with one line, if somebody else holds the lock.

    Raises:
        StoreError: On entry: somebody else still holds the lock, or the tables cannot be created.
    """

    def __init__(
        self,
        store: Store,
        *,
        cluster: Cluster | None = None,
        limit_s: float = LIMIT_S,
        wait_s: float = 600.0,
        said: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._limit_s = limit_s
        self._wait_s = wait_s
        self._said = said
        self._name = LOCK + uuid.uuid4().hex
        self._on = f" {cluster.on}" if cluster else ""
        self._list = _list_sql(cluster)
        self._beats = 0
        self._since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        self._ended = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True, name="ettwatch migration lock")

    def __enter__(self) -> Self:
        """Take the lock; wait for it where that is needed."""
        watched = _Watched(self._limit_s)
        until = time.monotonic() + self._wait_s
        while True:
            others = self._others(watched)
            if not others:
                self._create()
                others = self._others(watched)
                if not others:
                    self._beating.start()
                    return self
                self._drop(self._name)
            if time.monotonic() >= until:
                raise StoreError(
                    f"another migration of this database runs: {_who(others)}; wait for it, or end it: its lock is "
                    f"taken over {self._limit_s:g} s after it died"
                )
            if self._said is not None:
                self._said(f"waiting for another migration of this database: {_who(others)}")
                self._said = None
            # Not in step with others that wait.
            time.sleep(min(_LOOK_S, self._limit_s / 4) * (0.5 + random.random()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the lock."""
        self._ended.set()
        self._beating.join(self._limit_s)
        with contextlib.suppress(StoreError):  # then it is taken over as that of a dead one
            self._drop(self._name)

    def check(self) -> None:
        """Make sure that the lock is still held. To be called before each change.

        Raises:
            StoreError: Somebody took it over, for this process had not been heard of.
        """
        if self._name not in self._all():
            raise StoreError(
                "the lock of this migration was taken over, since nothing was heard of it for too long; what was "
                "applied stays, and another migration goes on from there"
            )

    def _others(self, watched: "_Watched") -> dict[str, str]:
        """The locks of others, without those of the dead, which are dropped."""
        found = self._all()
        found.pop(self._name, None)
        for dead in watched.look(found):
            self._drop(dead)
            del found[dead]
        return found

    def _all(self) -> dict[str, str]:
        return {str(name): str(comment) for name, comment in self._store.query(self._list).rows}

    def _create(self) -> None:
        try:
            self._store.command(
                f"CREATE TABLE {self._name}{self._on} (nothing UInt8) ENGINE = Memory COMMENT {self._told()}"
            )
        except BaseException:
            with contextlib.suppress(StoreError):  # it may be there for all that
                self._drop(self._name)
            raise

    def _drop(self, name: str) -> None:
        self._store.command(f"DROP TABLE IF EXISTS {name}{self._on} SYNC")

    def _beat(self) -> None:
        while not self._ended.wait(self._limit_s / 6):
            self._beats += 1
            # One server of a cluster is enough: who watches looks at all of them.
            with contextlib.suppress(StoreError):
                self._store.command(f"ALTER TABLE {self._name} MODIFY COMMENT {self._told()}")

    def _told(self) -> str:
        about = {"host": socket.gethostname(), "process": os.getpid(), "since": self._since, "beat": self._beats}
        text = _COMMENT + json.dumps(about)
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class _Watched:
    """Tells the dead from the living: who does not move while watched is dead."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._seen: dict[str, tuple[str, float]] = {}

    def look(self, comments: dict[str, str]) -> list[str]:
        """Take note of the comments as they are now; return the names of the dead."""
        now = time.monotonic()
        for name, comment in comments.items():
            if self._seen.get(name, ("", 0.0))[0] != comment:
                self._seen[name] = (comment, now)
        return [name for name in comments if now - self._seen[name][1] >= self._limit_s]


def _list_sql(cluster: Cluster | None) -> str:
    if cluster is None:
        return (
            "SELECT name, comment FROM system.tables "
            f"WHERE database = currentDatabase() AND startsWith(name, '{LOCK}') ORDER BY name"
        )
    return (
        "SELECT name, arrayStringConcat(arraySort(groupUniqArray(comment)), ' ') FROM "
        f"clusterAllReplicas('{cluster.name}', system.tables) WHERE database = '{cluster.database}' "
        f"AND startsWith(name, '{LOCK}') GROUP BY name ORDER BY name SETTINGS skip_unavailable_shards = 1"
    )


def _who(others: dict[str, str]) -> str:
    comment = min(others.values())
    try:
        about, _ = json.JSONDecoder().raw_decode(comment.removeprefix(_COMMENT))
        return f"process {about['process']} on {about['host']}, since {about['since']}"
    except (ValueError, KeyError, TypeError):
        return comment or "one that does not say who it is"
