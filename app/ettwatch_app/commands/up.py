"""`ettwatch up`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ettwatch_app import datafolder
from ettwatch_app.up.settings import (
    SECOND,
    SETTINGS,
    UpSettings,
    parse_interval,
    parse_lateness,
    parse_listen,
    parse_page,
)

T = TypeVar("T")
_BY_OPTION = {setting.option: setting for setting in SETTINGS}


def _option(name: str, *parameter: str, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    setting = _BY_OPTION[name]
    told = [f"default: {setting.default}"] if setting.default else []
    told += [f"or ${setting.variable}"] if setting.variable else []
    text = setting.meaning + (f" [{'; '.join(told)}]" if told else "")
    # The folders' variables are read where the folders are located: a path may hold the colon that would split it.
    variable = None if name in ("--data", "--spool") else setting.variable
    return click.option(name, *parameter, envvar=variable, help=text, **more)


def _parsed(parse: Callable[[str], T]) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    def callback(_: click.Context, parameter: click.Parameter, text: str | None) -> T | None:
        try:
            return None if text is None else parse(text)
        except ValueError as e:
            raise click.BadParameter(str(e), param=parameter) from e

    return callback


@click.command()
@_option("--data", type=click.Path(file_okay=False))
@_option("--spool", type=click.Path(file_okay=False), multiple=True)
@_option("--listen", default="127.0.0.1:8123", callback=_parsed(parse_listen), metavar="HOST:PORT")
@_option("--page", default="127.0.0.1:9467", callback=_parsed(parse_page), metavar="HOST:PORT")
@_option("--interval", default="5s", callback=_parsed(parse_interval), metavar="TIME")
@_option("--lateness", default="6h", callback=_parsed(parse_lateness), metavar="TIME")
@_option("--log-format", default="text", type=click.Choice(["text", "json"]))
@_option("--once", is_flag=True)
@_option("--for", "stop_after", callback=_parsed(parse_interval), metavar="TIME")
@click.pass_context
def up(
    context: click.Context,
    data: str | None,
    spool: tuple[str, ...],
    listen: tuple[str, int] | None,
    page: tuple[str, int] | None,
    interval: int,
    lateness: int | None,
    log_format: Any,
    once: bool,
    stop_after: int | None,
) -> None:
    """Follow the spool folders, fold the events, write ClickHouse, and serve it and the page, in one process.

    Times are written as 500ms, 5s, 10m, 6h or 7d. SIGTERM or Ctrl-C ends it in good order.

    Exit codes: 0 done; 1 done, some input was rejected; 2 nothing done.
    """
    folder = datafolder.locate(data)
    settings = UpSettings(
        data=folder.root,
        spools=datafolder.spools(folder, spool),
        listen=listen,
        page=None if once else page,
        interval_us=interval,
        lateness_us=lateness,
        log_format=log_format,
        once=once,
        stop_after_s=None if stop_after is None else stop_after / SECOND,
    )
    from ettwatch_app.up.start import run_up

    context.exit(run_up(settings))
