"""What there is to choose from: names of teams, models, clusters and owners, and the time that is known."""

from typing import NamedTuple, cast

from ettwatch_clickhouse import Store

__all__ = ["Names", "read_names"]

_MOST = 1_000


class Names(NamedTuple):
    """Names, each sorted; at most 1,000 of a kind."""

    teams: list[str]
    models: list[str]
    clusters: list[str]
    first_us: int | None
    """Begin of the first hour of which there is anything."""
    last_us: int | None
    """End of the last one."""


def read_names(store: Store) -> Names:
    """Return them. Raises StoreError."""
    row = store.query(
        f"SELECT arraySort(groupUniqArrayIf({_MOST})(toString(team), team != '')), "
        f"arraySort(groupUniqArrayIf({_MOST})(toString(model), model != '')), "
        f"arraySort(groupUniqArrayIf({_MOST})(toString(cluster), cluster != '')) FROM rollup_days"
    ).rows[0]
    hours = store.query(
        "SELECT count(), min(toUnixTimestamp(hour)), max(toUnixTimestamp(hour)) FROM rollup_hours WHERE parts > 0"
    ).rows[0]
    number, first, last = cast("tuple[int, int, int]", hours)
    teams, models, clusters = cast("tuple[list[str], list[str], list[str]]", row)
    return Names(
        [*teams],
        [*models],
        [*clusters],
        first * 1_000_000 if number else None,
        (last + 3_600) * 1_000_000 if number else None,
    )
