"""The log of a worker and of the sink: one line for each thing, for people, or one JSON object for log collectors.

Whoever has something to say uses `logging.getLogger(__name__)` and names the thing in `extra`:
`logger.info("12 partitions taken over", extra={"event": "assigned", "partitions": 12})`.
"""

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

LOG_VARIABLES: Final[Mapping[str, str]] = {
    "ETTWATCH_LOG_FORMAT": "`json` for one JSON object a line, anything else for lines to read",
    "ETTWATCH_LOG_LEVEL": "`debug`, `info`, `warning` or `error`: what is less important is not written",
}
"""Every variable that says how the log is written."""

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_CHATTY: Final = ("kafka", "aiokafka", "faust", "mode")
"""What others' packages say is written from warnings on, and the same not again within a while."""

_DOUBLED: Final = ("clickhouse_connect", "urllib3")
"""What these log they raise as well, and whoever catches it tells it."""

_AGAIN_S: Final = 30.0
_MOST_KINDS: Final = 1_000

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "event"}


def configure(form: str | None = None, level: str | int = "info", stream: TextIO | None = None) -> None:
    """Send the log to standard error. Called again, it replaces what it set before.

    Args:
        form: `json`; anything else means lines to read.
        level: One of `debug`, `info`, `warning`, `error`, or a number of `logging`.
        stream: Instead of standard error.

    Raises:
        ValueError: There is no such level.
    """
    number = _LEVELS.get(level.strip().lower()) if isinstance(level, str) else level
    if number is None:
        raise ValueError(f"{level!r} is no level of the log; choose one of {', '.join(_LEVELS)}")
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(_Json() if (form or "").strip().lower() == "json" else _Text())
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(number)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))


class _Handler(logging.StreamHandler[TextIO]):
    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._said: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to write a record: clients of a broker that is away say the same many times a second."""
        package = record.name.partition(".")[0]
        if package in _DOUBLED:
            return False
        if package not in _CHATTY or record.levelno >= logging.ERROR:
            return True
        kind = record.name, str(record.msg)
        if record.created - self._said.get(kind, 0.0) < _AGAIN_S:
            return False
        if len(self._said) >= _MOST_KINDS:
            self._said.clear()
        self._said[kind] = record.created
        return True

    def handleError(self, record: logging.LogRecord) -> None:
        """Go on: nobody reads the log any more."""


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": _moment(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "said"),
            "message": record.getMessage(),
            **_figures(record),
        }
        if record.name != "root":
            told["logger"] = record.name
        if record.exc_info:
            told["trace"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(told, ensure_ascii=False, default=str)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        mark = "! " if record.levelno >= logging.WARNING else ""
        # One thing, one line: what others say may hold line breaks.
        message = " ".join(record.getMessage().splitlines())
        line = f"{_moment(record).astimezone():%Y-%m-%d %H:%M:%S}  {mark}{message}"
        if record.exc_info:
            line += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return line


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _figures(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}
