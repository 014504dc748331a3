"""The Faust app of `ettwatch windows`. It is set up as that of a worker is, for the same reasons: see there."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

import faust
from faust.types import TP

from ettwatch_core.ownership import Owners
from ettwatch_faust.batches import BatchTransport, RawTopic
from ettwatch_faust.finder import Finder
from ettwatch_faust.group import FaustGroup
from ettwatch_faust.security import broker_settings, client_settings
from ettwatch_faust.sender import Sender
from ettwatch_faust.topics import names
from ettwatch_faust.windows.engine import WindowsEngine
from ettwatch_faust.windows.metrics import WindowsMetrics
from ettwatch_faust.windows.reader import StateReader
from ettwatch_faust.windows.settings import WindowsSettings

__all__ = ["WindowsApp", "make_windows_app"]

_LOG: Final = logging.getLogger(__name__)
_FETCHED: Final = 2_000
_BURST: Final = 200
"""Records taken in before others have their turn."""

_TURN_S: Final = 0.5


class WindowsApp(faust.App):
    """The app, with its engine.

    Attributes:
        engine: Does the work.
        metrics: The figures.
        settings: What it was told.
        stopped_by: What ended it by itself; None where it was asked to end.
        takes_over: Takes partitions over at the moment.
    """

    logger = logging.getLogger("faust.app")
    engine: WindowsEngine
    metrics: WindowsMetrics
    settings: WindowsSettings
    stopped_by: BaseException | None = None
    takes_over: asyncio.Task[None] | None = None

    def _create_directories(self) -> None:
        """Make no folder: none is needed."""

    def _new_transport(self) -> BatchTransport:
        return BatchTransport(self.conf.broker_consumer, self)

    async def on_stop(self) -> None:
        """Write the state before the consumer leaves the group."""
        if self.stopped_by is None:
            await self.engine.revoke(self.settings.session_timeout_s)
        self.engine.drop()
        if self.takes_over is not None:
            self.takes_over.cancel()
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

    def healthy(self) -> str | None:
        """Return why the process should be started anew; None if it works."""
        return None if self.stopped_by is None else f"stopped: {self.stopped_by}"

    def ready(self) -> str | None:
        """Return why it does not work just now; None if it does."""
        if self.engine.trouble is not None:
            return self.engine.trouble
        return None if self.engine.joined else "it has no share of the partitions yet: joining, or reading the state"

    async def give_up(self, error: BaseException) -> None:
        """End the process; what was not written is made anew."""
        if self.stopped_by is None:
            self.stopped_by = error
            _LOG.error("the windows stop: %s", error, extra={"event": "stopped"})
            self.engine.drop()
            await self.crash(error)


def make_windows_app(settings: WindowsSettings, owners: Owners, look: Callable[[int], Owners | None]) -> WindowsApp:
    """Return the app.

    Args:
        settings: What it is told.
        owners: Who owns which stage.
        look: Asked with the time (µs) now and then; returns other owners where they changed.
    """
    called = names(settings.topics.prefix)
    app = WindowsApp(
        f"{settings.topics.prefix}-windows",
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
        datadir=None,
        debug=False,
        store="memory://",
        Topic=RawTopic,
        stream_buffer_maxsize=16,
        stream_recovery_delay=0.0,
        stream_wait_empty=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=settings.topics.partitions,
        topic_replication_factor=1,
        web_enabled=False,
    )
    app.settings, app.metrics = settings, WindowsMetrics()
    clients = client_settings(settings.access)
    topics = (called.jobs, called.attempts, called.segments, called.parts)
    app.engine = WindowsEngine(
        called,
        settings.sizes,
        owners,
        {topic: FaustGroup(app, topic, Finder(clients, topic)) for topic in topics},
        StateReader(clients, called.windows_state),
        Sender(clients),
        app.metrics,
        wait_us=settings.wait_us,
        snapshot_s=settings.snapshot_s,
    )
    _connect(app, topics, look)
    return app


def _connect(app: WindowsApp, topics: tuple[str, ...], look: Callable[[int], Owners | None]) -> None:
    engine = app.engine
    parts = topics[-1]
    # No acknowledgements: the state says where to go on.
    topic = app.topic(*topics, key_type=bytes, value_type=bytes, acks=False, allow_empty=True)

    async def take(stream: Any) -> None:
        """Take records in. Each message holds what was fetched of a partition at once."""
        try:
            async for event in stream.noack().events():
                records = event.message.value
                for at in range(0, len(records), _BURST):
                    for record in records[at : at + _BURST]:
                        engine.take(record)
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await app.give_up(error)

    app.agent(topic, name="take")(take)

    @app.on_partitions_revoked.connect(weak=False)
    async def revoked(app: WindowsApp, revoked: set[TP], **_: Any) -> None:
        await engine.revoke(app.settings.session_timeout_s / 2)

    @app.on_partitions_assigned.connect(weak=False)
    async def assigned(app: WindowsApp, assigned: set[TP], **_: Any) -> None:
        stages = {
            # All topics have equally many partitions, so those of one number come together.
            1: sorted({tp.partition for tp in assigned if tp.topic == topics[0]}),
            2: sorted({tp.partition for tp in assigned if tp.topic == parts}),
        }
        app.takes_over = asyncio.get_running_loop().create_task(take_over(stages, app.consumer_generation_id))

    async def take_over(stages: dict[int, list[int]], generation: int) -> None:
        try:
            await engine.assign(stages, generation)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # Nobody waits for this task.
            await app.give_up(error)

    async def turns() -> None:
        """Tell what is due by the clock."""
        try:
            while not app.should_stop:
                begun_s = time.monotonic()
                changed = look(time.time_ns() // 1_000)
                if changed is not None:
                    engine.own(changed)
                await engine.turn()
                await asyncio.sleep(max(0.01, _TURN_S - (time.monotonic() - begun_s)))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await app.give_up(error)

    app.task(turns)
