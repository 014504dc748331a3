"""In which order alerts are listed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ettwatch_clickhouse import migrate, open_embedded
from ettwatch_monitor.queries import list_alerts

AT = datetime(2026, 9, 21, 12, tzinfo=UTC)
COLUMNS = ["key", "episode", "seq", "id", "status", "severity", "starts_at", "updated_at", "labels", "title", "body"]


def test_what_fires_stands_first_by_severity_then_the_newest(tmp_path: Path) -> None:
    wanted = [
        ("a", "firing", "critical", 1),
        ("b", "firing", "warning", 5),
        ("c", "firing", "warning", 2),
        ("d", "firing", "info", 9),
        ("e", "resolved", "info", 8),
        ("f", "resolved", "critical", 3),
    ]
    rows = [
        (key, 1, 1, key, status, severity, AT, AT + timedelta(minutes=minute), {"team": "ads"}, key, "why")
        for key, status, severity, minute in wanted
    ]
    store = open_embedded(tmp_path / "clickhouse")
    try:
        migrate(store)
        store.insert("alerts_log", COLUMNS, rows[::-1])
        assert [one.key for one in list_alerts(store)] == [key for key, *_ in wanted]
    finally:
        store.close()
