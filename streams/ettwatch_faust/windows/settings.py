"""Every setting of `ettwatch windows`, in one place: its option, its variable, its default and what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ettwatch_core.windows import Sizes
from ettwatch_faust.brokers import Access
from ettwatch_faust.settings import Setting, topics_of, web_of
from ettwatch_faust.topics import SettingError, TopicSettings
from ettwatch_schemas.durations import parse_duration

__all__ = ["WINDOWS_SETTINGS", "WindowsSettings"]

WINDOWS_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("--lengths", "ETTWATCH_WINDOWS", "1h,24h,7d", "How long the windows are: up to 5 lengths of up to 31 days. "
            "Those of up to 3 h end on every minute, those of up to 48 h on every fifth, longer ones on every hour."),
    Setting("--correct-for", "ETTWATCH_WINDOWS_CORRECT", "24h", "For how long after its end a window is published anew "
            "when late events change it; memory grows with it."),
    Setting("--wait", "ETTWATCH_WINDOWS_WAIT", "45s", "How long after its end a window is published first: longer than "
            "the workers take to tell of running jobs."),
    Setting("--snapshot-every", "ETTWATCH_WINDOWS_SNAPSHOT", "5m", "How often the state of a partition is written; a "
            "restart reads again what came since."),
    Setting("--owners", "ETTWATCH_OWNERS", "", "The ownership file; a change of it is seen within some seconds, and "
            "what was lost is told anew by owner. Without it the built-in one counts."),
    Setting("--session-timeout", "ETTWATCH_SESSION_TIMEOUT", "30s", "Silence after which Kafka gives the partitions of "
            "a process to others."),
    Setting("--instance", "ETTWATCH_INSTANCE", "", "A name of this process that outlives restarts (static membership): "
            "a restart within the session timeout moves no partitions."),
    Setting("--web", "ETTWATCH_WEB", "127.0.0.1:9466", "Where to serve /metrics, /healthz and /readyz: HOST:PORT, port "
            "0 picks a free one, `off` serves none."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowsSettings:
    """What `ettwatch windows` is told. Times in microseconds or seconds, as their names say."""

    access: Access
    topics: TopicSettings = field(default_factory=TopicSettings)
    sizes: Sizes = field(default_factory=Sizes.parse)
    wait_us: int = 45_000_000
    snapshot_s: float = 300.0
    owners: str | None = None
    session_timeout_s: float = 30.0
    instance: str | None = None
    web: str = "127.0.0.1:9466"

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
            setting = _named(option)
            value = given.get(option[2:].replace("-", "_"))
            return str(value) if value is not None else (env.get(setting.variable, "").strip() or setting.default)

        def known(option: str, read: Callable[[str], Any]) -> Any:
            try:
                return read(text(option))
            except ValueError as error:
                raise SettingError(f"{option} ({_named(option).variable}): {error}") from None

        correct = text("--correct-for")
        known("--correct-for", lambda kept: Sizes.parse(correct=kept))
        return cls(
            access=Access.read(env, given.get("bootstrap")),
            topics=topics_of(env, given),
            sizes=known("--lengths", lambda lengths: Sizes.parse(lengths, correct)),
            wait_us=known("--wait", _wait),
            snapshot_s=known("--snapshot-every", _wait) / 1e6,
            owners=text("--owners") or None,
            session_timeout_s=known("--session-timeout", _wait) / 1e6,
            instance=text("--instance") or None,
            web=known("--web", web_of),
        )


def _named(option: str) -> Setting:
    return next(each for each in WINDOWS_SETTINGS if each.option == option)


def _wait(text: str) -> int:
    value = parse_duration(text)
    if not value:
        raise ValueError(f"{text!r} is no duration to wait; write one above 0, like 5s or 5m")
    return value
