import pytest

from ettwatch_clickhouse import Store, retention, set_retention
from support.clickhouse import count

DAY = 86_400


def test_events_are_kept_for_400_days_and_the_rest_for_ever(store: Store) -> None:
    assert retention(store, "events") == 400
    assert retention(store, "segments") is None
    assert retention(store, "phases") is None


@pytest.mark.parametrize("view", ["events", "segments", "phases"])
def test_it_can_be_set_and_taken_back(store: Store, view: str) -> None:
    before = retention(store, view)
    try:
        for days in (1, 30, 30, None, None, 7):
            set_retention(store, view, days)
            assert retention(store, view) == days
    finally:
        set_retention(store, view, before)
    assert retention(store, view) == before


def test_old_hours_go_and_those_of_a_far_future_stay(embedded: Store) -> None:
    set_retention(embedded, "segments", 30)
    try:
        now = int(str(embedded.query("SELECT toUnixTimestamp(now())").rows[0][0]))
        columns = ["job", "cell", "version", "written", "attempt", "stage", "start_us", "length_us", "gpus"]
        cells = [now - 40 * DAY, now - 20 * DAY, 7_000_000_000]
        rows = [("j", cell, 1, n, [0], ["scheduling"], [0], [5], [1]) for n, cell in enumerate(cells)]
        embedded.insert("segments_log", columns, rows)
        embedded.command("OPTIMIZE TABLE segments_log FINAL")
        assert count(embedded, "segments") == 2
        assert embedded.query("SELECT max(toYear(start)) FROM segments").rows == [(2191,)]
    finally:
        set_retention(embedded, "segments", None)


@pytest.mark.parametrize(("view", "days"), [("jobs", 3), ("nothing", 3), ("events", 0), ("events", -1)])
def test_what_cannot_be_is_refused(embedded: Store, view: str, days: int) -> None:
    with pytest.raises(ValueError, match="view: |days: "):
        set_retention(embedded, view, days)
