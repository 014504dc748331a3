"""One state of an alert, as the topic `ett.alerts` and webhooks have it."""

from typing import Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

__all__ = ["EXAMPLE", "AlertLink", "AlertRecord"]


class AlertLink(BaseModel):
    """A question in SQL that shows what an alert says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(description="what it shows")
    query: str = Field(description="the question, for the views in ClickHouse")


class AlertRecord(BaseModel):
    """One state of an alert. Of two of one key and episode the one with the greater seq is newer."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    v: Literal[1] = Field(description="version of the form")
    id: str = Field(description="names the state; one that comes twice is a doubled message")
    key: str = Field(description="what is watched: the same in every state, also when it fires anew")
    episode: int = Field(description="names the time for which it fires; about its begin in microseconds")
    seq: int = Field(ge=0, description="number of the state in its episode; rises")
    status: Literal["firing", "resolved"] = Field(description="firing or resolved")
    severity: Literal["info", "warning", "critical"] = Field(description="info, warning or critical")
    starts_at: AwareDatetime = Field(description="since when it fires, RFC 3339, UTC")
    ends_at: AwareDatetime | None = Field(description="when it ended; null while it fires")
    updated_at: AwareDatetime = Field(description="when this state was found")
    silenced: bool = Field(description="a silence matched when it was sent")
    labels: dict[str, str] = Field(description="what it is routed, grouped and silenced by")
    title: str = Field(description="one line")
    body: str = Field(description="what moved, from what to what, since when, and what explains most of it")
    facts: dict[str, float | str] = Field(description="the figures behind it, by name")
    sql: list[AlertLink] = Field(description="questions that show it")


EXAMPLE: Final[dict[str, Any]] = {
    "v": 1,
    "id": "2eceb8c0652b41c5b8c6fb3a4a3bb5f2",
    "key": "tts|team=ads",
    "episode": 1790000000000000,
    "seq": 0,
    "status": "firing",
    "severity": "warning",
    "starts_at": "2026-09-21T14:13:20.000000Z",
    "ends_at": None,
    "updated_at": "2026-09-21T14:13:20.000000Z",
    "silenced": False,
    "labels": {"alertname": "EttwatchRegression", "metric": "tts", "team": "ads", "severity": "warning"},
    "title": "TTS of ads rose from 5m to 6m",
    "body": "TTS of team ads rose from 5m to 6m since Monday.",
    "facts": {"before_s": 300.0, "now_s": 360.0},
    "sql": [{"title": "starts of the team", "query": "SELECT job, tts_s FROM jobs WHERE team = 'ads'"}],
}
"""A record that says what one looks like."""
