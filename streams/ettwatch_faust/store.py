"""The table of live jobs: a Faust table whose partitions are read and written one by one.

Faust's own tables are written inside an agent, one key at a time, each with a record of its own (70 to 200 µs). Here a
flush writes whole partitions at once, and the local copy follows the changelog only after the offsets of the events
were committed: a worker that has lost its partition never takes its own stale writes for the truth.
"""

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import faust
from faust.stores import base, rocksdb
from faust.types import TP

from ettwatch_core import StateError
from ettwatch_faust.batches import records_of
from ettwatch_faust.shelf import Write

__all__ = ["MemoryStore", "RocksStore", "StateTable"]

_LOG: Final = logging.getLogger(__name__)
_LOGGER: Final = logging.getLogger("faust.table")
_MIB: Final = 1 << 20
_BUFFER: Final = 4
"""Messages of the changelog, of up to 2,000 records each, that are applied at once."""

_CHECK: Final = b"__ettwatch_check"
"""Under this key lie how many marks were set, and whose state it is."""

_MARK: Final = b"__ettwatch_mark_%04d"
_MARKS: Final = 2_048
_MARK_EVERY: Final = 64 << 10
"""Bytes of keys and values between two marks; the newest marks reach back further than what is not in table files."""

_LOCKED: Final = ("IO error: While lock file", "IO error: lock ")
_BROKEN: Final = ("Corruption", "Invalid argument", "Not implemented", "NotFound")


class _MemoryPart(dict[bytes, bytes]):
    """One partition in memory."""


class MemoryStore(base.Store[bytes, bytes]):
    """Keeps the partitions in memory; after a start they are read from the changelog."""

    logger = _LOGGER

    def __post_init__(self) -> None:
        self._parts: dict[int, _MemoryPart] = {}

    def part(self, partition: int) -> _MemoryPart:
        """Return a partition."""
        return self._parts.setdefault(partition, _MemoryPart())

    def write(self, partition: int, writes: Iterable[Write], offset: int | None) -> None:
        """Apply what the changelog has; `offset` is its last record's."""
        part = self.part(partition)
        for key, value in writes:
            if value is None:
                part.pop(key, None)
            else:
                part[key] = value

    def apply_changelog_batch(self, batch: Iterable[Any], to_key: Any, to_value: Any) -> None:
        """Apply records of the changelog while the table is read."""
        for record in records_of(batch):
            self.write(record.partition, ((record.key, record.value),), None)

    def persisted_offset(self, tp: TP) -> int | None:
        """Nothing outlives the process."""
        return None

    async def on_rebalance(self, assigned: set[TP], revoked: set[TP], newly: set[TP], generation_id: int = 0) -> None:
        """Forget what is not ours, and what is read anew."""
        kept = _partitions(self.table, assigned) - _partitions(self.table, newly)
        for partition in self._parts.keys() - kept:
            del self._parts[partition]

    def reset_state(self) -> None:
        """Forget everything."""
        self._parts.clear()

    async def backup_partition(self, tp: TP | int, flush: bool = True, purge: bool = False, keep: int = 1) -> None:
        """Do nothing: the changelog is the copy."""

    def restore_backup(self, tp: TP | int, latest: bool = True, backup_id: int = 0) -> None:
        """Do nothing: the changelog is the copy."""


class _RocksPart:
    """One partition in its own RocksDB."""

    def __init__(self, db: Any) -> None:
        self._db = db

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._db.get(key)
        return value

    def __contains__(self, key: bytes) -> bool:
        return bool(self._db.key_may_exist(key)) and self._db.get(key) is not None

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        yield from self._db.items()


class _Damaged(Exception):
    """A partition on disk is not what was written."""


class RocksStore(rocksdb.Store):
    """Keeps each partition in a RocksDB on disk; after a start only what is newer is read from the changelog.

    RocksDB goes on without a word where its list of files ends early, and an iterator where a block is damaged. So a
    partition is read through when it is opened, and marks tell whether files are missing. One that is damaged is
    removed, and read from the changelog once more.
    """

    logger = _LOGGER

    def __init__(self, url: str, app: Any, table: Any, **kwargs: Any) -> None:
        self._set_marks: dict[int, tuple[int, int]] = {}  # by partition: how many, and bytes written since the last
        super().__init__(url, app, table, **kwargs)

    def part(self, partition: int) -> _RocksPart:
        """Return a partition."""
        return _RocksPart(self._db_for_partition(partition))

    def apply_changelog_batch(self, batch: Iterable[Any], to_key: Any, to_value: Any) -> None:
        """Apply records of the changelog while the table is read."""
        writes: dict[int, list[Write]] = {}
        last: dict[int, int] = {}
        for record in records_of(batch):
            writes.setdefault(record.partition, []).append((record.key, record.value))
            last[record.partition] = record.offset
        for partition, some in writes.items():
            self.write(partition, some, last[partition])

    def write(self, partition: int, writes: Iterable[Write], offset: int | None) -> None:
        """Apply what the changelog has, together with its last record's offset. Raises StateError."""
        import rocksdict

        db = self._db_for_partition(partition)
        batch = rocksdict.WriteBatch(raw_mode=True)
        marks, size = self._set_marks[partition]
        for key, value in writes:
            size += len(key)
            if value is None:
                batch.delete(key)
            else:
                size += len(value)
                batch.put(key, value)
        if size >= _MARK_EVERY:
            batch.put(_MARK % (marks % _MARKS), b"%d" % marks)
            marks, size = marks + 1, 0
        batch.put(_CHECK, b"%d %s" % (marks, self.app.conf.id.encode()))
        if offset is not None:
            batch.put(self.offset_key, str(offset).encode())
        try:
            db.write(batch)
        except Exception as error:
            raise _unusable(self.partition_path(partition), _one_line(error)) from None
        self._set_marks[partition] = marks, size

    def _open_for_partition(self, partition: int) -> Any:
        """Open a partition that is whole; where it is not, a new one."""
        path = self.partition_path(partition)
        try:
            return self._opened(partition, path)
        except _Damaged as error:
            why = str(error)
        # Not before the exception is gone: what it passed through keeps the lock.
        _LOG.warning(
            "the copy of partition %d in %s cannot be used: %s; it is removed, and read from the changelog anew",
            partition,
            path,
            why,
            extra={"event": "state_damaged", "partition": partition},
        )
        try:
            shutil.rmtree(path)
            return self._opened(partition, path)
        except (OSError, _Damaged) as error:
            raise _unusable(path, error) from None

    def _opened(self, partition: int, path: Path) -> Any:
        """Open a partition, and read it through. Raises _Damaged, StateError."""
        # RocksDB's own exceptions have no class.
        try:
            db = self.rocksdb_options.open(path)
        except Exception as error:
            text = _one_line(error)
            if text.startswith(_LOCKED):
                raise  # another process may be about to end: it is tried again
            if text.startswith(_BROKEN) or "No such file" in text or "Is a directory" in text:
                raise _Damaged(text) from None
            raise _unusable(path, text) from None
        try:
            marks = self._read_through(db)
        except _Damaged:
            db.close()
            raise
        self._set_marks[partition] = marks, _MARK_EVERY  # what is written first has a mark
        return db

    def _read_through(self, db: Any) -> int:
        found: dict[bytes, bytes] = {}
        prefix = _MARK[: _MARK.index(b"%")]
        walk = db.iter()
        try:
            walk.seek_to_first()
            while walk.valid():
                key = walk.key()
                if key.startswith(prefix):
                    found[key] = walk.value()
                walk.next()
            walk.status()
            told = db.get(_CHECK)
        except Exception as error:
            raise _Damaged(_one_line(error)) from None
        finally:
            del walk  # it keeps the database open
        if told is None:
            return 0  # new, or of a version that set no marks
        number, _, owner = told.partition(b" ")
        if owner.decode() != self.app.conf.id:
            raise _Damaged(f"it holds the state of {owner.decode()}, not of {self.app.conf.id}")
        marks = int(number)
        if any(found.get(_MARK % (n % _MARKS)) != b"%d" % n for n in range(max(0, marks - _MARKS), marks)):
            raise _Damaged("files of it are missing")
        return marks


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _unusable(path: Path, error: object) -> StateError:
    return StateError(
        f"cannot use the local copy of the state, {path}: {error}; make room or mend the disk, or give another "
        "--state-dir: it is read from the changelog anew"
    )


class StateTable(faust.Table[bytes, bytes]):
    """The table of live jobs.

    Args:
        app: The app.
        name: Its name; the changelog is named after it.
        partitions: As many as the events topic has.
        folder: Where to keep it on disk; None for memory.
        ready: Called with the partitions that are ours when all of the changelog is read.
    """

    logger = _LOGGER

    def __init__(self, app: Any, *, name: str, partitions: int, folder: Path | None, **kwargs: Any) -> None:
        self._folder = folder
        options = {"driver": "rocksdict", "write_buffer_size": 16 * _MIB, "block_cache_size": 64 * _MIB}
        super().__init__(
            app,
            name=name,
            partitions=partitions,
            key_type=bytes,
            value_type=bytes,
            recovery_buffer_size=_BUFFER,
            options=options if folder is not None else None,
            **kwargs,
        )
        self.ready: Any = None

    def _new_store(self) -> Any:
        kind = MemoryStore if self._folder is None else RocksStore
        url = "memory://" if self._folder is None else "rocksdb://"
        return kind(
            url,
            self.app,
            self,
            table_name=self.name,
            key_type=self.key_type,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            value_type=self.value_type,
            loop=self.loop,
            options=self.options,
        )

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Say that the partitions are read."""
        await super().on_recovery_completed(active_tps, standby_tps)
        await self.ready(sorted(tp.partition for tp in active_tps))


def _partitions(table: Any, tps: Sequence[TP] | set[TP]) -> set[int]:
    names: Mapping[str, Any] = dict.fromkeys(table.changelog_topic.topics)
    return {tp.partition for tp in tps if tp.topic in names}
