"""The sink at work: reads, collects batches, has them written, and commits their offsets once they are safe."""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from ettwatch_app.sink.batch import Batch, Place, Record
from ettwatch_app.sink.content import content_of
from ettwatch_app.sink.settings import Limits
from ettwatch_app.sink.writing import BatchWriter, Flight
from ettwatch_clickhouse.metrics import SinkMetrics

log = logging.getLogger(__name__)

_LAG_EVERY_S: Final = 2.0
_AWAY_S: Final = 2.0
"""How long to wait at the end for a ClickHouse that is away."""

_MOST_SHARE: Final = 4.0
"""A batch waits for others as long as the one before took to be written, so that ClickHouse has as much time for its
merges; and at most this many times as long as it would else."""


class Reads(Protocol):
    """Where the records come from; see :class:`ettwatch_app.sink.source.Source`."""

    trouble: str | None

    def read(self, limits: Limits) -> list[Record]:
        """Return some records."""

    def pause(self, pause: bool) -> None:
        """Read nothing for now, or go on."""

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Have offsets committed, soon."""

    def commit_now(self, offsets: Mapping[Place, int], seconds: float) -> None:
        """Have offsets committed."""

    def position(self, place: Place) -> int | None:
        """Return what is read next of a partition."""

    def end(self, place: Place) -> int | None:
        """Return the end of a partition."""

    def places(self) -> list[Place]:
        """Return the partitions that are read."""


class Sink:
    """Moves records from a source into ClickHouse.

    One batch is filled while another one is written. When both are full nothing is read until there is room again; the
    process stays a member of its group meanwhile.

    Args:
        kinds: By topic, what its records are.
        writer: Writes the batches.
        metrics: The figures to keep.
        limits: Bounds of time and memory.
        clock: The time in seconds since the Unix epoch.
        monotonic: A clock that never jumps, in seconds.
    """

    def __init__(
        self,
        kinds: Mapping[str, str],
        writer: BatchWriter,
        metrics: SinkMetrics,
        limits: Limits,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kinds = kinds
        self._writer = writer
        self._metrics = metrics
        self._limits = limits
        self._clock = clock
        self._monotonic = monotonic
        self._source: Reads
        self._batch = Batch()
        self._flight: Flight | None = None
        self._launched_at, self._took_s = -math.inf, 0.0
        self._uncommitted: dict[Place, int] = {}
        self._safe: dict[Place, int] = {}
        self._joined = False
        self._beat = monotonic()
        self._lag_at = self._commit_at = 0.0

    def run(self, source: Reads, stop: threading.Event, ends: Mapping[Place, int] | None = None) -> None:
        """Work until told to stop, or until everything before `ends` is safe; then write what is held, and commit.

        Args:
            source: Where the records come from; its owner is this sink.
            stop: Set by whoever wants it to end.
            ends: Where to end in each partition; without it there is no end.
        """
        self._source = source
        while not stop.is_set() and not (ends is not None and self._is_through(ends)):
            self._turn()
        self._finish()

    def healthy(self) -> str | None:
        """Return None if the work is looked after, else the reason why this process should be started anew."""
        stood = self._monotonic() - self._beat
        return None if stood < self._limits.stuck_s else f"nothing was done for {stood:.0f} s"

    def ready(self) -> str | None:
        """Return None if records go into ClickHouse, else the reason."""
        if not self._joined:
            return "has not joined the consumer group yet"
        return self._writer.trouble or self._source.trouble

    # What the source tells. `revoked` may come in another thread, while this one waits for the source.

    def assigned(self, places: list[Place]) -> None:
        """These partitions are read from now on, from where they were committed."""
        self._joined = True
        self._metrics.partitions.set(len(places))
        log.info("%d partitions to read", len(places), extra={"event": "assigned", "partitions": len(places)})

    def revoked(self, *, lost: bool) -> None:
        """No partition is read any more. What can be written in time is, and committed; the rest comes again."""
        held = self._batch.born is not None or self._flight is not None
        if held and not lost and self._writer.trouble is None:
            self._write_until(self._monotonic() + self._limits.hand_over_s)
        if self._uncommitted and not lost:
            self._source.commit(dict(self._uncommitted))
        if self._flight is not None:
            self._flight.give_up()
        self._batch = Batch()
        self._uncommitted = {}
        self._safe = {}
        self._metrics.partitions.set(0)
        self._metrics.lag.clear()
        log.info("the partitions are given back", extra={"event": "revoked", "lost": lost})

    def committed(self, offsets: Mapping[Place, int], error: Exception | None) -> None:
        """These offsets are committed, or the brokers refused."""
        if error is not None:
            self._metrics.commit_failures.inc()
            what = type(error).__name__
            log.info("offsets are not committed yet: %s", what, extra={"event": "not_committed", "error": what})
            return
        for place, offset in offsets.items():
            if self._uncommitted.get(place) == offset:
                del self._uncommitted[place]

    def _turn(self) -> None:
        self._beat = self._monotonic()
        records = self._source.read(self._limits)
        for record in records:
            self._take(record)
        self._land()
        full = self._is_full()
        if self._flight is None and self._batch.born is not None and (full or self._is_due(quiet=not records)):
            self._launch()
            full = False
        self._source.pause(full)
        self._metrics.paused.set(full)
        self._metrics.held_rows.set(self._batch.rows)
        self._metrics.held_bytes.set(self._batch.bytes)
        now = self._monotonic()
        if self._uncommitted and now - self._commit_at >= self._limits.recommit_s:
            self._commit()
        if now - self._lag_at >= _LAG_EVERY_S:
            self._lag_at = now
            self._tell_lag()

    def _take(self, record: Record) -> None:
        self._safe.setdefault(record.place, record.offset)
        self._metrics.records.labels(record.place.topic).inc()
        content = content_of(self._kinds[record.place.topic], record.value, record.time_ms * 1_000)
        self._batch.add(record, content, self._clock())

    def _is_full(self) -> bool:
        return self._batch.rows >= self._limits.rows or self._batch.bytes >= self._limits.bytes

    def _is_due(self, *, quiet: bool) -> bool:
        """Tell whether what waits has waited long enough; two batches are always begun that far apart.

        Workers send all that they have at once, twice a second: when nothing more comes, nothing is worth waiting for.
        """
        assert self._batch.born is not None
        patience_s = self._patience_s()
        if not 0 <= self._clock() - self._batch.born < patience_s:
            return True
        return quiet and self._monotonic() - self._launched_at >= patience_s

    def _patience_s(self) -> float:
        """Return how long a record waits for others: longer where ClickHouse is slow, for few parts cost less."""
        usual = self._limits.seconds
        return min(max(usual, self._took_s), _MOST_SHARE * usual)

    def _launch(self) -> None:
        self._launched_at = self._monotonic()
        self._flight = Flight(self._writer, self._batch)
        self._batch = Batch()

    def _land(self) -> None:
        """Take note of a batch that is safe, and commit its offsets."""
        flight = self._flight
        if flight is None or not flight.over:
            return
        self._flight = None
        self._took_s = self._monotonic() - self._launched_at
        if flight.error is not None:
            raise flight.error
        if flight.safe:
            offsets = flight.batch.offsets()
            self._uncommitted |= offsets
            self._safe |= offsets
            self._commit()

    def _commit(self) -> None:
        self._commit_at = self._monotonic()
        self._source.commit(dict(self._uncommitted))

    def _write_until(self, deadline: float) -> None:
        """Go on writing what is held, until all of it is safe or time is up. Commits nothing."""
        while self._flight is not None or self._batch.born is not None:
            if self._flight is None:
                self._launch()
            flight = self._flight
            assert flight is not None
            if not flight.wait(deadline - self._monotonic()):
                return
            self._flight = None
            self._uncommitted |= flight.batch.offsets()

    def _finish(self) -> None:
        self._source.pause(True)
        away = self._writer.trouble is not None
        self._write_until(self._monotonic() + (min(_AWAY_S, self._limits.stop_s) if away else self._limits.stop_s))
        if self._flight is not None:
            self._flight.give_up()
            log.warning(
                "some records are left for the next one: they were not written in time", extra={"event": "left"}
            )
        if self._uncommitted:
            self._source.commit_now(dict(self._uncommitted), self._limits.recommit_s)

    def _is_through(self, ends: Mapping[Place, int]) -> bool:
        if not self._joined or self._batch.born is not None or self._flight is not None:
            return False
        return all((self._source.position(place) or 0) >= ends[place] for place in self._source.places())

    def _tell_lag(self) -> None:
        for place in self._source.places():
            end = self._source.end(place)
            if end is not None:
                behind = max(0, end - self._safe.get(place, end))
                self._metrics.lag.labels(place.topic, place.partition).set(behind)
