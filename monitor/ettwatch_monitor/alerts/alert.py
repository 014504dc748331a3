"""An alert as a value: what the detector says, and what delivery carries."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["SEVERITIES", "Alert", "Severity", "Status"]

Status = Literal["firing", "resolved"]
Severity = Literal["info", "warning", "critical"]

_END_OF_TIME = 1 << 53
"""Every program can tell a time before it to the microsecond. The year 2255."""

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")


@dataclass(frozen=True, slots=True)
class Alert:
    """One state of one alert. All times are microseconds since the Unix epoch.

    Raises ValueError where the key is empty, the status or severity is unknown, a text is no Unicode, or the times are
    none or contradict each other.
    """

    key: str
    """Stable name of what is watched, such as `tts|team=ads`: the same in every state, also when it fires again."""
    status: Status
    starts_at: int
    """Since when it fires: the onset as far as it is known. With `key` it names one episode."""
    ends_at: int | None
    """When it ended; None while it fires."""
    updated_at: int
    """When this state was found. Of two states of one key the one found later counts."""
    severity: Severity
    labels: dict[str, str]
    """What it is routed, grouped and silenced by, such as metric, team, owner, component, cluster, model."""
    title: str
    """One line."""
    body: str
    """Plain text: what moved, from what to what, since when, and what explains most of it."""
    facts: dict[str, float | str] = field(default_factory=dict)
    """The figures behind it, by name."""
    sql: Sequence[tuple[str, str]] = ()
    """Titles and queries that show it."""

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("an alert needs a key")
        if self.status not in ("firing", "resolved"):
            raise ValueError(f"{self.key}: status is {self.status!r}, not firing or resolved")
        if self.severity not in SEVERITIES:
            raise ValueError(f"{self.key}: severity is {self.severity!r}, not one of {', '.join(SEVERITIES)}")
        if (self.status == "resolved") != (self.ends_at is not None):
            raise ValueError(f"{self.key}: ends_at belongs to a resolved alert, and only to one")
        if self.ends_at is not None and self.ends_at < self.starts_at:
            raise ValueError(f"{self.key}: it ends before it starts")
        for time in (self.starts_at, self.ends_at or 0, self.updated_at):
            if not 0 <= time < _END_OF_TIME:
                raise ValueError(f"{self.key}: {time} is no time in microseconds since the Unix epoch")
        texts = (self.key, self.title, self.body, *self.labels, *self.labels.values(), *map(str, self.facts.values()))
        try:
            "".join((*texts, *self.facts, *(text for link in self.sql for text in link))).encode()
        except UnicodeEncodeError:
            raise ValueError(f"{self.key!r}: a text of the alert is no Unicode") from None

    @property
    def firing(self) -> bool:
        """Whether it fires."""
        return self.status == "firing"
