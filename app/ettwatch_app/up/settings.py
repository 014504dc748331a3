"""Every setting of `ettwatch up`, in one place. The command's options are made from `SETTINGS`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from ettwatch_schemas.durations import parse_duration

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


class Setting(NamedTuple):
    """One setting as users see it: its option, its variable, its default and what it does."""

    option: str
    variable: str | None
    default: str
    meaning: str


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("--data", "ETTWATCH_DATA", "./.ettwatch", "The data folder."),
    Setting(
        "--spool", "ETTWATCH_SPOOL", "DATA/spool", "A folder of event files to follow; may be given several times."
    ),
    Setting(
        "--listen",
        "ETTWATCH_LISTEN",
        "127.0.0.1:8123",
        "Where to serve ClickHouse's HTTP protocol: HOST:PORT on loopback; port 0 picks a free one; `off` serves none.",
    ),
    Setting(
        "--page",
        "ETTWATCH_PAGE",
        "127.0.0.1:9467",
        "Where to serve the page of the monitor: HOST:PORT on loopback; port 0 picks a free one; `off` serves none.",
    ),
    Setting(
        "--interval",
        "ETTWATCH_INTERVAL",
        "5s",
        "How often a running job that sends nothing is brought up to date.",
    ),
    Setting(
        "--lateness",
        "ETTWATCH_LATENESS",
        "6h",
        "How far an event may be behind the newest of its job; `none` for no limit.",
    ),
    Setting("--log-format", "ETTWATCH_LOG_FORMAT", "text", "`text` for people, `json` for log collectors."),
    Setting("--once", None, "", "Read everything there is, write it, and exit."),
    Setting("--for", None, "", "Stop by itself after this time."),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of time and memory that need no option. Times are seconds unless the name says microseconds (`_us`).

    Attributes:
        poll_s: How often the spool folders are looked through.
        commit_s: The shortest time between two commits, and so between two snapshots of one job.
        busy_share: The longest share of the time that commits may take; they are spaced out beyond it.
        quiet_s: A file that nobody holds locked counts as complete when it has not changed for this long.
        settle_s: A file that may still be copied in is removed, and its last line called cut off, only when it has
            not changed for this long.
        ahead_us: An event this far ahead of the clock is refused.
        expire_lost_us: How long the state of a lost job is kept.
        queued_us: How often a job that waits (for hardware, for a retry, in silence) is brought up to date.
        batch_events: Events read between two looks at the clock.
        chunk_bytes: Most that is read of one file at a time.
        buffer_bytes: Most that is read of all files together before it is handled.
        batch_rows: Rows that wait to be written at most; then they are, sooner than `commit_s`.
        batch_bytes: Bytes of events that wait to be written at most.
        states: Fold states of idle jobs that are kept in memory; the others wait in the state file.
        letters_bytes: Size at which the dead letter file is rotated (one old one is kept).
        keep_letter_bytes: Most of a refused line that is kept.
        report_s: The shortest time between two lines of the log that only tell how far it is.
        retry_s: First and longest pause after ClickHouse or the disk refused a write.
        forget_us: How long the place in a file that has vanished is remembered.
    """

    poll_s: float = 0.5
    commit_s: float = 1.0
    busy_share: float = 0.25
    quiet_s: float = 5.0
    settle_s: float = 60.0
    ahead_us: int = 10 * MINUTE
    expire_lost_us: int = 30 * DAY
    queued_us: int = MINUTE
    batch_events: int = 2_000
    chunk_bytes: int = 256 * 1024
    buffer_bytes: int = 8 * 1024 * 1024
    batch_rows: int = 50_000
    batch_bytes: int = 32 * 1024 * 1024
    states: int = 10_000
    letters_bytes: int = 64 * 1024 * 1024
    keep_letter_bytes: int = 1024 * 1024
    report_s: float = 5.0
    retry_s: tuple[float, float] = (1.0, 30.0)
    forget_us: int = 7 * DAY


@dataclass(frozen=True, slots=True)
class UpSettings:
    """What one run of `ettwatch up` is told.

    Attributes:
        data: The data folder.
        spools: The folders to follow.
        listen: Host and port of the HTTP front; None for none.
        page: Host and port of the page; None for none.
        interval_us: How often a running job is brought up to date without events.
        lateness_us: How far an event may be behind the newest of its job; None for no limit.
        log_format: Lines for people or for machines.
        once: Read everything there is, and stop.
        stop_after_s: Stop after this many seconds; None to go on.
        limits: Bounds of time and memory.
    """

    data: Path
    spools: tuple[Path, ...]
    listen: tuple[str, int] | None = ("127.0.0.1", 8123)
    page: tuple[str, int] | None = None
    interval_us: int = 5 * SECOND
    lateness_us: int | None = 6 * HOUR
    log_format: Literal["text", "json"] = "text"
    once: bool = False
    stop_after_s: float | None = None
    limits: Limits = Limits()


_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def parse_interval(text: str) -> int:
    """Return a positive duration in microseconds.

    Raises:
        ValueError: It is no positive duration.
    """
    value = parse_duration(text)
    if not value:
        raise ValueError(f"{text!r} is no duration to wait; write one above 0, like 5s or 500ms")
    return value


def parse_lateness(text: str) -> int | None:
    """Return a duration in microseconds, or None for `none`."""
    return None if text.strip().lower() == "none" else parse_interval(text)


def parse_listen(text: str) -> tuple[str, int] | None:
    """Return host and port of `HOST:PORT`, `:PORT` or `PORT`; None for `off`.

    Raises:
        ValueError: It is no address on this machine's loopback.
    """
    return _address(
        text,
        "127.0.0.1:8123",
        "the front asks for no password, so it serves 127.0.0.1 only: put a proxy with access control before it",
    )


def parse_page(text: str) -> tuple[str, int] | None:
    """Return host and port of the page, as `parse_listen`. Raises ValueError."""
    return _address(
        text,
        "127.0.0.1:9467",
        "here the page asks nobody who they are, so it serves 127.0.0.1 only: "
        "for others start `ettwatch monitor` with --tokens beside this",
    )


def _address(text: str, example: str, why: str) -> tuple[str, int] | None:
    if text.strip().lower() == "off":
        return None
    host, _, port = text.strip().rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{text!r} is no address; write HOST:PORT such as {example}, or off")
    if host not in _LOOPBACK:
        raise ValueError(f"{host!r} is not loopback; {why}")
    return host, int(port)
