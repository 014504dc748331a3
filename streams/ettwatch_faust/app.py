"""The Faust app of a worker: `ettwatch worker`, or `faust -A ettwatch_faust.app worker`.

What is known to go wrong in Faust is kept from mattering here and in `group`, `store` and `engine`:

- Faust's acknowledgements are not used: the topic has none, the engine commits. So a record that is never
  acknowledged cannot stall commits or hang a rebalance, and no gap in the offsets can make a wrong commit.
- After a recovery the streams resume before the seek, and records come twice: the engine knows the next offset.
- A record of the changelog that is dropped in a rebalance is waited for for ever: it is sought again (`stalled`).
- An agent that raises goes on with the next record: here it ends the worker, uncommitted.
- A record that cannot be decoded is acknowledged and gone: here records are bytes, and decoding cannot fail.
- Table writes outside of agents raise, in agents they are slow: the table is written in whole partitions.
"""

import asyncio
import contextlib
import logging
import os
import time
from typing import Any, Final

import faust
from faust.types import TP

from ettwatch_core import StateError
from ettwatch_faust.batches import BatchTransport, RawTopic
from ettwatch_faust.engine import Engine
from ettwatch_faust.finder import Finder
from ettwatch_faust.group import FaustGroup
from ettwatch_faust.limit import Stopped
from ettwatch_faust.metrics import Metrics
from ettwatch_faust.security import broker_settings, client_settings
from ettwatch_faust.sender import Sender
from ettwatch_faust.settings import WorkerSettings
from ettwatch_faust.stalled import RecoveryWatch
from ettwatch_faust.store import StateTable
from ettwatch_faust.topics import STATE_TABLE, names

__all__ = ["WorkerApp", "make_app"]

_LOG: Final = logging.getLogger(__name__)
_FETCHED: Final = 2_000
"""Records fetched at once at most: they are one message."""

_BURST: Final = 200
"""Records taken in before others have their turn."""

_LOOK_S: Final = 1.0


class WorkerApp(faust.App):
    """The app, with its engine.

    Attributes:
        engine: Does the work.
        metrics: The figures.
        settings: What it was told.
        stopped_by: What ended it by itself; None where it was asked to end.
    """

    logger = logging.getLogger("faust.app")
    engine: Engine
    metrics: Metrics
    settings: WorkerSettings
    stopped_by: BaseException | None = None

    def _create_directories(self) -> None:
        """Make no folder: the RocksDB store makes those that it needs, and in memory none is needed."""

    def _new_transport(self) -> BatchTransport:
        return BatchTransport(self.conf.broker_consumer, self)

    async def on_start(self) -> None:
        """Look after the first reading of the state, too: tasks of an app begin behind it."""
        await super().on_start()
        self.add_future(self._watch())

    async def _watch(self) -> None:
        watch = RecoveryWatch(self)
        while not self.should_stop:
            await asyncio.sleep(_LOOK_S)
            await watch.look()

    async def on_stop(self) -> None:
        """Flush before the consumer leaves the group."""
        if self.stopped_by is None:
            await self.engine.revoke(self.settings.session_timeout_s)
        self.engine.drop()
        await super().on_stop()
        await self.engine.close()

    async def run(self, asked: asyncio.Event) -> None:
        """Work until asked to end, or until it has to end by itself."""
        self.finalize()
        try:
            await self.start()
            await self.wait_for_stopped(asked.wait())
        except Exception as error:
            await self.give_up(error)
        finally:
            if self.crash_reason is not None:
                await self.give_up(self.crash_reason)
            await self.stop()

    async def crash(self, reason: BaseException) -> None:
        """End at once. A reason that is told in words needs no lines of code beside it, nor Faust's of the end."""
        if isinstance(reason, StateError | Stopped):
            for name in ("faust", "mode"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
            self._crash(reason)
        else:
            await super().crash(reason)

    def healthy(self) -> str | None:
        """Return why the worker should be started anew; None if it works."""
        return None if self.stopped_by is None else f"stopped: {self.stopped_by}"

    def ready(self) -> str | None:
        """Return why the worker does not work just now; None if it does."""
        if self.engine.trouble is not None:
            return self.engine.trouble
        return None if self.engine.joined else "it has no share of the partitions yet: joining, or reading the state"

    async def give_up(self, error: BaseException) -> None:
        """End the worker; nothing that was not committed is."""
        if self.stopped_by is None:
            self.stopped_by = error
            _LOG.error("the worker stops: %s", error, extra={"event": "stopped"})
            self.engine.drop()
            await self.crash(error)


def make_app(settings: WorkerSettings) -> WorkerApp:
    """Return the app of a worker."""
    called = names(settings.topics.prefix)
    folder = settings.state_dir if settings.store == "rocksdb" else None
    app = WorkerApp(
        called.app,
        **broker_settings(settings.access),
        autodiscover=False,
        broker_commit_interval=60.0,
        broker_max_poll_records=_FETCHED,
        broker_request_timeout=max(40.0, settings.session_timeout_s + 5),
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=min(3.0, settings.session_timeout_s / 3),
        broker_max_poll_interval=300.0,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=settings.instance,
        datadir=str(folder) if folder is not None else None,
        debug=False,
        store="memory://",
        Topic=RawTopic,
        stream_buffer_maxsize=16,
        stream_recovery_delay=0.0,
        stream_wait_empty=False,
        table_standby_replicas=0,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=settings.topics.partitions,
        topic_replication_factor=1,
        web_enabled=False,
    )
    app.settings = settings
    app.metrics = Metrics()
    table = StateTable(
        app, name=STATE_TABLE, partitions=settings.topics.partitions, folder=folder, beacon=app.tables.beacon
    )
    app.tables.add(table)
    app.engine = Engine(
        called,
        settings.policy,
        lambda: table.data,
        FaustGroup(app, called.events, Finder(client_settings(settings.access), called.events)),
        Sender(client_settings(settings.access)),
        app.metrics,
        dlq_limit=settings.dlq_limit,
        states=settings.states,
        certain_s=settings.session_timeout_s / 2,
    )
    _connect(app, table, called.events)
    return app


def _connect(app: WorkerApp, table: StateTable, events: str) -> None:
    engine = app.engine
    # No acknowledgements: the engine commits.
    topic = app.topic(events, key_type=bytes, value_type=bytes, acks=False, allow_empty=True)
    recovery = {"begun": 0.0}

    async def ready(partitions: list[int]) -> None:
        app.metrics.recovery_seconds.set(time.monotonic() - recovery["begun"])
        try:
            await engine.assign(partitions, app.consumer_generation_id)
        except Exception as error:
            # Faust would only note it, and the worker live on without work.
            await app.give_up(error)

    table.ready = ready

    async def fold(stream: Any) -> None:
        """Take records in. Each message holds what was fetched of a partition at once."""
        try:
            async for event in stream.noack().events():
                records = event.message.value
                for at in range(0, len(records), _BURST):
                    await engine.room()
                    for record in records[at : at + _BURST]:
                        engine.take(record)
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await app.give_up(error)

    app.agent(topic, name="fold")(fold)

    @app.on_partitions_revoked.connect(weak=False)
    async def revoked(app: WorkerApp, revoked: set[TP], **_: Any) -> None:
        recovery["begun"] = time.monotonic()
        await engine.revoke(app.settings.session_timeout_s / 2)

    async def flush() -> None:
        """Flush by the clock, so that nothing waits for a next event."""
        recovery["begun"] = recovery["begun"] or time.monotonic()
        try:
            while not app.should_stop:
                begun_s = time.monotonic()
                await engine.flush()
                rest_s = app.settings.flush_s - (time.monotonic() - begun_s)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(engine.full.wait(), max(0.01, rest_s))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await app.give_up(error)

    app.task(flush)


def __getattr__(name: str) -> WorkerApp:
    """Make `app` by the environment when `faust -A ettwatch_faust.app` asks for it."""
    if name != "app":
        raise AttributeError(name)
    globals()["app"] = made = make_app(WorkerSettings.read(os.environ))
    return made
