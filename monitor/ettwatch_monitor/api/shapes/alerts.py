"""Alerts and silences."""

from pydantic import Field

from ettwatch_monitor.api.shapes.base import Shape

__all__ = ["AlertRow", "Alerts", "SilenceBody", "SilenceRow"]


class AlertRow(Shape):
    """An alert's newest state."""

    key: str
    episode: int
    status: str = Field(description="firing or resolved")
    severity: str = Field(description="info, warning or critical")
    title: str
    body: str = Field(description="plain text: what moved, from what to what, since when, what explains most of it")
    starts_us: int
    ends_us: int | None
    updated_us: int
    silenced: bool
    labels: dict[str, str]
    figures: dict[str, float]
    sql: list[tuple[str, str]] = Field(description="titles and queries that show it")


class SilenceRow(Shape):
    """A silence: alerts that it matches are not told."""

    number: int
    matchers: str = Field(description='such as team="ads", severity=~"info|warning"')
    starts_us: int
    ends_us: int
    comment: str


class Alerts(Shape):
    """GET /alerts: those that fire first, then the newest."""

    alerts: list[AlertRow]
    silences: list[SilenceRow]
    can_silence: bool = Field(description="silences can be kept here, and you may")


class SilenceBody(Shape):
    """POST /alerts/silences; needs the role operator."""

    matchers: str = Field(min_length=1, max_length=1_000)
    hours: float = Field(gt=0, le=24 * 90, description="how long, from now")
    comment: str = Field(default="", max_length=500)
