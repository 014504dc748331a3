"""The page of the monitor while `ettwatch up` runs, over the same open engine."""

import logging
from contextlib import ExitStack
from importlib.metadata import version
from typing import Final

from ettwatch_app.up.log import Log
from ettwatch_clickhouse import Store, StoreError

_LOGGERS: Final = ("ettwatch_monitor", "ettwatch.audit", "uvicorn")


def serve_page(at: tuple[str, int] | None, store: Store, log: Log, stack: ExitStack) -> str | None:
    """Serve the page until `stack` is closed; return its address, None where there is none.

    What keeps the page from being served is told in one line of the log, and keeps nobody from measuring.

    Args:
        at: Host and port; None for no page.
        store: The open engine.
        log: Where it speaks.
        stack: What has to be closed.
    """
    if at is None:
        return None
    try:
        from ettwatch_monitor.api.app import make_app
        from ettwatch_monitor.api.serve import ListenError, beside, listen
        from ettwatch_monitor.api.settings import MonitorSettings
        from ettwatch_monitor.api.sqlview import asker_for
    except ModuleNotFoundError as e:
        log.alert("no_page", f"no page: needs {e.name}, which is not installed: pip install 'ettwatch[monitor]'")
        return None
    host, port = at
    try:
        socket = listen(host, port)
    except ListenError as e:
        why = str(e).partition("; ")[0]
        log.alert(
            "no_page",
            f"no page: {why}; measuring goes on without it. "
            "Choose another address with --page, such as --page 127.0.0.1:0 for any free port",
        )
        return None
    stack.callback(socket.close)
    settings = MonitorSettings()
    try:
        app = make_app(store, asker_for(store, None, settings.limits), settings, version=version("ettwatch"))
    except StoreError as e:
        log.alert("no_page", f"no page: {e}")
        return None
    stack.enter_context(_Told(log))
    stack.enter_context(beside(app, socket, settings.limits))
    return f"http://{f'[{host}]' if ':' in host else host}:{socket.getsockname()[1]}/"


class _Told(logging.Handler):
    """Has the log tell what the page warns of, in its own form, within a block."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.alert("page", f"page: {self.format(record)}")

    def __enter__(self) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self)

    def __exit__(self, *_: object) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self)
