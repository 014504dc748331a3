"""Answers of the API that are no figures: who asks, what happens live, alerts, SQL."""

from typing import Any

from ettwatch_monitor.api import shapes as s
from support.web_answers import DAY, HOUR, NOW, figures, row


def me(**changed: Any) -> s.Me:
    """GET /me."""
    told: dict[str, Any] = {
        "user": "tester",
        "role": "operator",
        "auth": "none",
        "csrf": "a-csrf-token",
        "can_silence": True,
        "can_sql": True,
        "can_advise": True,
        "demo": False,
        "version": "1.0",
        "now_us": NOW,
        "first_us": NOW - 30 * DAY,
        "last_us": NOW,
        "teams": ["team-ads", "team-feed"],
        "models": ["ranker", "retriever"],
        "clusters": ["east", "west"],
        "owners": ["compilers", "data"],
    }
    return s.Me(**(told | changed))


def live(number: int = 1, changed: int = 1, firing: int = 1, jobs: list[s.JobRow] | None = None) -> s.Live:
    """An event of GET /live."""
    return s.Live(
        number=number,
        at_us=NOW + number * 2_000_000,
        statuses={"training": 9, "starting": 2},
        firing=firing,
        day=figures(),
        jobs=[row("live-job", "training")] if jobs is None else jobs,
        changed=changed,
        stale=None,
    )


def alerts() -> s.Alerts:
    """GET /alerts: one that fires, one that is over."""
    told: dict[str, Any] = {
        "episode": 1,
        "severity": "warning",
        "title": "Time to start of team-ads doubled",
        "body": "From 412 s to 830 s since 18:00.\nMost of it is pt2_compilation: <b>no markup</b>.",
        "starts_us": NOW - 2 * HOUR,
        "updated_us": NOW,
        "silenced": False,
        "labels": {"team": "team-ads", "metric": "tts"},
        "figures": {"now_s": 830.0, "before_s": 412.0},
        "sql": [("The starts behind it", "SELECT job, tts_s FROM jobs")],
    }
    return s.Alerts(
        alerts=[
            s.AlertRow(key="tts|team=team-ads", status="firing", ends_us=None, **told),
            s.AlertRow(key="nof|team=team-feed", status="resolved", ends_us=NOW - HOUR, **told),
        ],
        silences=[
            s.SilenceRow(number=1, matchers='team="team-feed"', starts_us=NOW, ends_us=NOW + HOUR, comment="known")
        ],
        can_silence=True,
    )


def sql() -> s.SqlAnswer:
    """POST /sql."""
    return s.SqlAnswer(
        columns=[s.SqlColumn(name="job", type="String"), s.SqlColumn(name="lost", type="Float64")],
        rows=[["job-1", 12.5], ["=cmd()", None]],
        truncated=True,
        elapsed_s=0.012,
    )
