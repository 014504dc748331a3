"""The table of live jobs: a Faust table whose partitions are read and written one by one.

Faust's own tables are written inside an agent, one key at a time, each with a record of its own (70 to 200 µs). Here a
flush writes whole partitions at once, and the local copy follows the changelog only after the offsets of the events
were committed: a worker that has lost its partition never takes its own stale writes for the truth.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import faust
from faust.stores import base, rocksdb
from faust.types import TP

from ettwatch_faust.batches import records_of
from ettwatch_faust.shelf import Write

__all__ = ["MemoryStore", "RocksStore", "StateTable"]

_LOGGER: Final = logging.getLogger("faust.table")
_MIB: Final = 1 << 20
_BUFFER: Final = 4
"""Messages of the changelog, of up to 2,000 records each, that are applied at once."""


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


class RocksStore(rocksdb.Store):
    """Keeps each partition in a RocksDB on disk; after a start only what is newer is read from the changelog."""

    logger = _LOGGER

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
        """Apply what the changelog has, together with its last record's offset."""
        import rocksdict

        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in writes:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        if offset is not None:
            batch.put(self.offset_key, str(offset).encode())
        self._db_for_partition(partition).write(batch)


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
