"""Every setting of `ettwatch sink` that is its own, in one place. The command's options are made from `SETTINGS`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ettwatch_app.clickhouse import ClickHouseAccess
    from ettwatch_faust import Access, Names, TopicSettings

DEFAULT_WEB: Final = "127.0.0.1:9465"


class Setting(NamedTuple):
    """One setting as users see it: its option, its variable, its default and what it does."""

    option: str
    variable: str | None
    default: str
    meaning: str


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("--rows", "ETTWATCH_SINK_ROWS", "50000", "Rows that wait at most; then they are written."),
    Setting("--bytes", "ETTWATCH_SINK_BYTES", "33554432", "Bytes of records that wait at most."),
    Setting(
        "--seconds",
        "ETTWATCH_SINK_SECONDS",
        "0.5",
        "How long a record waits at most for others; up to four times as long while ClickHouse is slow.",
    ),
    Setting("--timeout", "ETTWATCH_SINK_TIMEOUT", "60", "Seconds to wait for an answer of ClickHouse; then try again."),
    Setting(
        "--web",
        "ETTWATCH_WEB",
        DEFAULT_WEB,
        "Where to answer /metrics, /healthz and /readyz: HOST:PORT, or `off`.",
    ),
    Setting("--once", None, "", "Read the topics up to their present ends, write that, and exit."),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of time and memory. Times are seconds.

    Attributes:
        rows: Rows that wait at most.
        bytes: Bytes of records that wait at most.
        seconds: How long a record waits at most for others; up to four times as long while ClickHouse is slow.
        poll_s: Longest wait for records in one call.
        poll_records: Records taken over in one call.
        hand_over_s: How long to go on writing when the partitions are to be given to another process. The brokers hear
            nothing meanwhile: well below `session_s`.
        stop_s: How long to go on writing when the process is to end.
        session_s: After this long without a sign of life the brokers give the partitions to another process.
        recommit_s: How long to wait before offsets are committed once more that the brokers did not take.
        first_pause_s: The first pause when ClickHouse is away; each is twice the one before.
        most_pause_s: The longest one.
        remind_s: How often a trouble that lasts is told again.
        stuck_s: The process is not healthy when it has not looked after its work for this long.
    """

    rows: int = 50_000
    bytes: int = 32 << 20
    seconds: float = 0.5
    poll_s: float = 0.1
    poll_records: int = 500
    hand_over_s: float = 2.0
    stop_s: float = 20.0
    session_s: float = 10.0
    recommit_s: float = 5.0
    first_pause_s: float = 0.2
    most_pause_s: float = 10.0
    remind_s: float = 30.0
    stuck_s: float = 60.0


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """What one run of `ettwatch sink` is told.

    Attributes:
        access: How the brokers are reached.
        topics: What the site chose of its topics.
        clickhouse: How ClickHouse is reached.
        timeout_s: Seconds to wait for an answer of ClickHouse.
        web: HOST:PORT of the probe, or `off`.
        once: Read the topics up to their present ends, and stop.
        limits: Bounds of time and memory.
    """

    access: "Access"
    topics: "TopicSettings"
    clickhouse: "ClickHouseAccess"
    timeout_s: int = 60
    web: str = DEFAULT_WEB
    once: bool = False
    limits: Limits = Limits()

    @property
    def group(self) -> str:
        """The consumer group of all sinks under the prefix."""
        return f"{self.topics.prefix}-sink"


def inputs(called: "Names") -> dict[str, str]:
    """Return the topics that the sink reads, each with what its records are."""
    return {
        called.jobs: "jobs",
        called.attempts: "attempts",
        called.segments: "segments",
        called.phases: "phases",
        called.accepted: "accepted",
        called.windows: "windows",
    }
