"""`ettwatch sink`: what the workers publish on Kafka, into ClickHouse."""

import os
from collections.abc import Callable
from typing import Any

import click

from ettwatch_app.asked import stop_by_signal
from ettwatch_app.commands._shared import Refused, ends_cleanly, seldom
from ettwatch_app.sink.settings import DEFAULT_WEB, SETTINGS, Limits, SinkSettings

_BY_OPTION = {setting.option: setting for setting in SETTINGS}


def _option(name: str, *parameter: str, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    setting = _BY_OPTION[name]
    told = [f"default: {setting.default}"] if setting.default else []
    told += [f"or ${setting.variable}"] if setting.variable else []
    text = setting.meaning + (f"  [{'; '.join(told)}]" if told else "")
    return click.option(name, *parameter, envvar=setting.variable, help=text, **more)


@click.command()
@click.option("--bootstrap", metavar="HOST:PORT,…", help="The brokers.  [default: $ETTWATCH_KAFKA]")
@click.option("--prefix", help="What the names of the topics begin with.  [default: $ETTWATCH_TOPIC_PREFIX, else ett]")
@click.option(
    "--partitions",
    type=int,
    help="Partitions that the topics have at least.  [default: $ETTWATCH_PARTITIONS, else 32]",
)
@click.option(
    "--clickhouse",
    metavar="URL",
    help="The database, http[s]://user@host:8123/ettwatch.  [default: $ETTWATCH_CLICKHOUSE]",
)
@_option("--rows", type=click.IntRange(1, 10_000_000), default=50_000)
@_option("--bytes", "size", type=click.IntRange(1, 4 << 30), default=32 << 20)
@_option("--seconds", type=click.FloatRange(0.01, 3600), default=0.5)
@_option("--timeout", type=click.IntRange(1, 3600), default=60)
@_option("--web", metavar="HOST:PORT", default=DEFAULT_WEB)
@_option("--once", is_flag=True)
@ends_cleanly
def sink(
    bootstrap: str | None,
    prefix: str | None,
    partitions: int | None,
    clickhouse: str | None,
    rows: int,
    size: int,
    seconds: float,
    timeout: int,
    web: str,
    once: bool,
) -> None:
    """Read what the workers publish on Kafka, and write it into ClickHouse in large batches.

    Any number of sinks share the partitions. SIGTERM or Ctrl-C ends one in good order: what it holds is written.

    Exit codes: 0 stopped as asked, or all was read (--once); 2 nothing done.
    """
    import ettwatch_faust as side
    from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
    from ettwatch_faust import logs

    try:
        logs.configure(os.environ.get("ETTWATCH_LOG_FORMAT"), os.environ.get("ETTWATCH_LOG_LEVEL") or "info")
        usual = side.TopicSettings.read(os.environ)
        topics = side.TopicSettings(
            usual.prefix if prefix is None else prefix,
            usual.partitions if partitions is None else partitions,
            usual.replication,
        )
        settings = SinkSettings(
            side.Access.read(os.environ, bootstrap),
            topics,
            ClickHouseAccess.read(os.environ, clickhouse),
            timeout,
            web,
            once,
            Limits(rows=rows, bytes=size, seconds=seconds),
        )
    except (side.SettingError, side.BrokersError, ClickHouseSettingError, ValueError) as error:
        raise Refused(str(error)) from None
    from ettwatch_app.sink.start import CannotBegin, run_sink

    seldom()
    try:
        run_sink(settings, stop_by_signal())
    except CannotBegin as error:
        raise Refused(str(error)) from None
