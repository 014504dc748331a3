"""From settings to a running sink: what has to be right before it begins, and its end."""

import logging
import threading
from typing import Final

from ettwatch_app.sink.letters import Letters
from ettwatch_app.sink.runner import Sink
from ettwatch_app.sink.settings import SinkSettings, inputs
from ettwatch_app.sink.source import Source
from ettwatch_app.sink.writing import BatchWriter
from ettwatch_clickhouse import RollupKeeper, Rollups, Store, StoreError, StoreUnavailable
from ettwatch_clickhouse.metrics import SinkMetrics
from ettwatch_clickhouse.schema import check_schema
from ettwatch_faust import BrokersError, SettingError, names, plan, precheck
from ettwatch_faust.probe import Probe, ProbeError, serve
from ettwatch_faust.web import parse_address

log = logging.getLogger(__name__)

_ROLLUPS_S: Final = 600
"""Seconds to wait for a statement that makes rollups anew."""


class CannotBegin(Exception):
    """Nothing was done. One line that says what is wrong and what to do."""


def run_sink(settings: SinkSettings, stop: threading.Event) -> None:
    """Run a sink until it is told to stop, or is through.

    Raises:
        CannotBegin: A setting is wrong, the brokers are not reached, a login is refused, or topics or tables are not
            as they have to be.
    """
    starting = _Starting()
    metrics = SinkMetrics()
    probe = _probe(settings, metrics, starting)
    try:
        _check_topics(settings)
        store = _store(settings, stop, starting)
        if store is None:
            return
        _work(settings, stop, starting, metrics, store)
    finally:
        if probe is not None:
            probe.close()


class _Starting:
    """What the probe answers, from the first moment on."""

    def __init__(self) -> None:
        self.waits_for: str | None = "is starting"
        self.sink: Sink | None = None

    def healthy(self) -> str | None:
        return None if self.sink is None else self.sink.healthy()

    def ready(self) -> str | None:
        return self.waits_for if self.sink is None else self.sink.ready()


def _probe(settings: SinkSettings, metrics: SinkMetrics, starting: _Starting) -> Probe | None:
    try:
        if parse_address(settings.web) is None:
            return None
        return serve(settings.web, metrics.registry, starting.healthy, starting.ready)
    except (ValueError, ProbeError) as error:
        raise CannotBegin(str(error)) from None


def _check_topics(settings: SinkSettings) -> None:
    called = names(settings.topics.prefix)
    wanted = {*inputs(called), called.dlq}
    try:
        precheck(settings.access, [spec for spec in plan(settings.topics) if spec.name in wanted])
    except (BrokersError, SettingError) as error:
        raise CannotBegin(str(error)) from None


def _store(settings: SinkSettings, stop: threading.Event, starting: _Starting) -> Store | None:
    """Return the database once it answers and its tables are right; None when told to stop before."""
    pause = settings.limits.first_pause_s
    while not stop.is_set():
        store = None
        try:
            store = settings.clickhouse.connect(timeout_s=settings.timeout_s)
            check_schema(store)
            return store
        except StoreUnavailable as error:
            if str(error) != starting.waits_for:
                log.warning("%s; waiting for it", error, extra={"event": "waiting"})
            starting.waits_for = str(error)
        except StoreError as error:
            raise CannotBegin(str(error)) from None
        if store is not None:
            store.close()
        stop.wait(pause)
        pause = min(2 * pause, settings.limits.most_pause_s)
    return None


def _work(
    settings: SinkSettings, stop: threading.Event, starting: _Starting, metrics: SinkMetrics, store: Store
) -> None:
    called = names(settings.topics.prefix)
    kinds = inputs(called)
    letters = Letters(settings.access, called.dlq)
    writer = BatchWriter(store, letters, metrics, settings.limits)
    sink = Sink(kinds, writer, metrics, settings.limits)
    source = Source(settings, kinds, sink, sink.committed)
    # A handle of its own: making much anew takes longer than the rows that come in can wait.
    apart = settings.clickhouse.connect(timeout_s=max(settings.timeout_s, _ROLLUPS_S))
    rollups = Rollups(apart)
    keeper = None if settings.once else RollupKeeper(rollups, _told)
    try:
        ends = source.ends(kinds) if settings.once else None
        starting.sink = sink
        log.info(
            "reading %s.* for %s",
            *(settings.topics.prefix, settings.clickhouse.where),
            extra={"event": "started", "group": settings.group},
        )
        sink.run(source, stop, ends)
        if settings.once:
            _roll_up(rollups)
    finally:
        if keeper is not None:
            keeper.close()
        apart.close()
        source.close()
        letters.close()
    log.info("stopped", extra={"event": "stopped"})


def _roll_up(rollups: Rollups) -> None:
    try:
        rollups.run()
    except StoreError as error:
        _told(error)


def _told(error: StoreError) -> None:
    log.warning("the rollups are not up to date: %s", error, extra={"event": "rollups"})
