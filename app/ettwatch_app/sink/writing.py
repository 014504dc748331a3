"""Writing a batch: again and again until it is safe, in a thread of its own, so that reading goes on meanwhile."""

import logging
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from ettwatch_app.sink.batch import Batch
from ettwatch_app.sink.letters import LettersFailed
from ettwatch_app.sink.settings import Limits
from ettwatch_clickhouse import Store, StoreError, StoreUnavailable
from ettwatch_clickhouse.metrics import SinkMetrics
from ettwatch_clickhouse.standing import look_up
from ettwatch_clickhouse.updates import Insert, Standing
from ettwatch_clickhouse.writeids import WriteIds
from ettwatch_schemas import DeadLetter

T = TypeVar("T")
log = logging.getLogger(__name__)


class SendsLetters(Protocol):
    """Where dead letters go."""

    def send(self, letters: list[DeadLetter]) -> None:
        """Send them; raises LettersFailed."""


class Given(Exception):
    """Writing was given up, because the partitions belong to someone else by now."""


class BatchWriter:
    """Writes batches, one at a time.

    Attributes:
        trouble: Why nothing is written at the moment; None if all is well.

    Args:
        store: With all migrations applied.
        letters: Where dead letters go.
        metrics: The figures to keep.
        limits: How long to wait between tries.
        clock: The time in seconds since the Unix epoch.
    """

    def __init__(
        self,
        store: Store,
        letters: SendsLetters,
        metrics: SinkMetrics,
        limits: Limits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.trouble: str | None = None
        self._store = store
        self._letters = letters
        self._metrics = metrics
        self._limits = limits
        self._clock = clock
        self._ids = WriteIds(clock)
        self._told: tuple[str, float] = ("", 0.0)

    def write(self, batch: Batch, given_up: threading.Event) -> None:
        """Return when all of a batch is safe. To be called once for each batch.

        Raises:
            Given: `given_up` was set first. Parts may have been written, which does no harm.
        """
        wholes = batch.updates.wholes()
        standing = self._until_done(lambda: look_up(self._store, wholes), given_up) if wholes else Standing()
        # Made once: what may or may not have arrived is sent as it was.
        for insert in batch.updates.inserts(standing, self._ids):
            self._until_done(partial(self._insert, insert, batch.token(insert.table)), given_up)
        if batch.letters:
            self._send_letters(batch.letters, given_up)
        self._metrics.delay_seconds.observe(max(0.0, self._clock() - batch.newest_ms / 1000))

    def _insert(self, insert: Insert, token: str) -> None:
        begun = time.monotonic()
        self._store.insert(insert.table, insert.columns, insert.rows, token=token)
        self._metrics.insert_seconds.labels(insert.table).observe(time.monotonic() - begun)
        self._metrics.insert_rows.labels(insert.table).observe(len(insert.rows))
        self._metrics.inserts.labels(insert.table).inc()
        self._metrics.rows.labels(insert.table).inc(len(insert.rows))

    def _send_letters(self, letters: list[DeadLetter], given_up: threading.Event) -> None:
        first = letters[0]
        log.warning(
            "%d of the records cannot be read and go to the dead letters; the first is %s/%d offset %d: %s",
            *(len(letters), first.topic, first.partition, first.offset, first.reason),
            extra={"event": "refused", "count": len(letters), "code": first.code},
        )
        self._until_done(lambda: self._letters.send(letters), given_up)
        for letter in letters:
            self._metrics.refused.labels(letter.topic).inc()

    def _until_done(self, step: Callable[[], T], given_up: threading.Event) -> T:
        pause = self._limits.first_pause_s
        while True:
            try:
                done = step()
            except (StoreError, LettersFailed) as error:
                self._fail(error)
            else:
                self._recover()
                return done
            if given_up.wait(pause * (0.5 + random.random() / 2)):
                raise Given
            pause = min(2 * pause, self._limits.most_pause_s)

    def _fail(self, error: StoreError | LettersFailed) -> None:
        self._metrics.retries.inc()
        self.trouble = str(error)
        now = self._clock()
        if self._told[0] != self.trouble or now - self._told[1] >= self._limits.remind_s:
            self._told = (self.trouble, now)
            passes = isinstance(error, StoreUnavailable | LettersFailed)
            log.log(
                logging.WARNING if passes else logging.ERROR,
                "%s; trying again, nothing is lost",
                self.trouble,
                extra={"event": "waiting" if passes else "refused_by_clickhouse"},
            )

    def _recover(self) -> None:
        if self.trouble is not None:
            self.trouble = None
            self._told = ("", 0.0)
            log.info("rows are written again", extra={"event": "recovered"})


class Flight:
    """A batch on its way, in a thread of its own.

    Attributes:
        batch: The batch.
        error: What ended it, if that was no fault of ClickHouse or Kafka.
    """

    def __init__(self, writer: BatchWriter, batch: Batch) -> None:
        self.batch = batch
        self.error: BaseException | None = None
        self._safe = False
        self._given_up = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(writer,), name="sink-writer", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended, in one way or another."""
        return self._over.is_set()

    @property
    def safe(self) -> bool:
        """Whether all of the batch is safe, and nobody has given it up before."""
        return self._safe and not self._given_up.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; return whether all of it is safe."""
        return self._over.wait(max(0.0, seconds)) and self.safe

    def give_up(self) -> None:
        """Try no more. What is on its way just now may arrive, which does no harm."""
        self._given_up.set()

    def _run(self, writer: BatchWriter) -> None:
        try:
            writer.write(self.batch, self._given_up)
            self._safe = True
        except Given:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self._over.set()
