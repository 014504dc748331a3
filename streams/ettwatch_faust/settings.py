"""Every setting of a worker, in one place: its option, its variable, its default and what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self

from ettwatch_core import Pace, Rules
from ettwatch_faust.brokers import Access
from ettwatch_faust.live import Policy
from ettwatch_faust.topics import SettingError, TopicSettings
from ettwatch_faust.web import parse_address
from ettwatch_schemas.durations import parse_duration

__all__ = ["WORKER_SETTINGS", "Setting", "WorkerSettings", "topics_of", "web_of"]

_DAY_US: Final = 86_400_000_000


class Setting(NamedTuple):
    """One setting as users see it."""

    option: str
    variable: str
    default: str
    meaning: str


WORKER_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("--store", "ETTWATCH_STORE", "memory", "Where the state of live jobs lies beside its changelog: `memory`, "
            "or `rocksdb` for fleets whose state is larger than memory."),
    Setting("--state-dir", "ETTWATCH_STATE_DIR", "./.ettwatch/worker", "The folder of the RocksDB store; no two "
            "workers may share one."),
    Setting("--states", "ETTWATCH_STATES", "3000000", "Events of live jobs kept unpacked in memory, of about 350 bytes "
            "each; beyond it jobs are packed away until they speak again."),
    Setting("--flush-every", "ETTWATCH_FLUSH_EVERY", "500ms", "How often results and state are sent and offsets "
            "committed."),
    Setting("--publish-every", "ETTWATCH_PUBLISH_EVERY", "30s", "How often a job that only makes progress is "
            "published; everything else is told with the next flush."),
    Setting("--look-every", "ETTWATCH_LOOK_EVERY", "60s", "How often a running job that sends nothing is brought up to "
            "date."),
    Setting("--lateness", "ETTWATCH_LATENESS", "6h", "How far an event may be behind the newest of its job; `none` for "
            "no limit: state then grows with the job."),
    Setting("--dlq-limit", "ETTWATCH_DLQ_LIMIT", "500", "Dead letters among 1,000 records after which the worker stops "
            "instead of going on; 0 for no limit."),
    Setting("--session-timeout", "ETTWATCH_SESSION_TIMEOUT", "30s", "Silence after which Kafka gives the partitions of "
            "a worker to others."),
    Setting("--instance", "ETTWATCH_INSTANCE", "", "A name of this worker that outlives restarts (static membership): "
            "a restart within the session timeout moves no partitions."),
    Setting("--web", "ETTWATCH_WEB", "127.0.0.1:9464", "Where to serve /metrics, /healthz and /readyz: HOST:PORT, port "
            "0 picks a free one, `off` serves none."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker is told. Times in microseconds or seconds, as their names say."""

    access: Access
    topics: TopicSettings = field(default_factory=TopicSettings)
    store: Literal["memory", "rocksdb"] = "memory"
    state_dir: Path = Path(".ettwatch/worker")
    states: int = 3_000_000
    flush_s: float = 0.5
    publish_us: int = 30_000_000
    look_us: int = 60_000_000
    lateness_us: int | None = 6 * 3_600_000_000
    dlq_limit: int = 500
    session_timeout_s: float = 30.0
    instance: str | None = None
    web: str = "127.0.0.1:9464"

    @classmethod
    def read(cls, env: Mapping[str, str], told: Mapping[str, Any] | None = None) -> Self:
        """Read the settings.

        Args:
            env: The environment.
            told: What options said, by the name of the option with underscores; None where nothing was said.

        Raises:
            SettingError: A setting cannot be.
            BrokersError: The brokers are not named, or the login is not whole.
        """
        given = dict(told or {})

        def text(option: str) -> str:
            setting = next(each for each in WORKER_SETTINGS if each.option == option)
            value = given.get(option[2:].replace("-", "_"))
            return str(value) if value is not None else (env.get(setting.variable, "").strip() or setting.default)

        store = _known("--store", text("--store"), _store)
        return cls(
            access=Access.read(env, given.get("bootstrap")),
            topics=topics_of(env, given),
            store=store,
            state_dir=Path(text("--state-dir")),
            states=_known("--states", text("--states"), _count),
            flush_s=_known("--flush-every", text("--flush-every"), _wait) / 1e6,
            publish_us=_known("--publish-every", text("--publish-every"), _wait),
            look_us=_known("--look-every", text("--look-every"), _wait),
            lateness_us=_known("--lateness", text("--lateness"), _lateness),
            dlq_limit=_known("--dlq-limit", text("--dlq-limit"), _count),
            session_timeout_s=_known("--session-timeout", text("--session-timeout"), _wait) / 1e6,
            instance=text("--instance") or None,
            web=_known("--web", text("--web"), web_of),
        )

    @property
    def policy(self) -> Policy:
        """How jobs are treated."""
        rules = Rules(lateness=self.lateness_us)
        pace = Pace(rules, self.look_us, max(self.look_us, 60_000_000), 30 * _DAY_US)
        return Policy(rules, pace, self.publish_us, again_us=int(2e6 * self.session_timeout_s))


def topics_of(env: Mapping[str, str], given: Mapping[str, Any]) -> TopicSettings:
    """Return where the topics are: what options say, else the variables. Raises SettingError."""
    usual = TopicSettings.read(env)
    prefix, partitions = given.get("prefix"), given.get("partitions")
    return TopicSettings(
        usual.prefix if prefix is None else prefix,
        usual.partitions if partitions is None else partitions,
        usual.replication,
    )


def _known(option: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        variable = next(each.variable for each in WORKER_SETTINGS if each.option == option)
        raise SettingError(f"{option} ({variable}): {error}") from None


def _store(text: str) -> str:
    if text not in ("memory", "rocksdb"):
        raise ValueError(f"{text!r} is no store; write memory or rocksdb")
    return text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise ValueError(f"{text[:40]!r} is no whole number from 0 on")
    return int(text)


def _wait(text: str) -> int:
    value = parse_duration(text)
    if not value:
        raise ValueError(f"{text!r} is no duration to wait; write one above 0, like 5s or 500ms")
    return value


def _lateness(text: str) -> int | None:
    return None if text.lower() == "none" else _wait(text)


def web_of(text: str) -> str:
    """Return the address of a probe, which can be one. Raises ValueError."""
    parse_address(text)
    return text
