"""What the engine found damaged when it opened its tables, and put aside: all answers lack the rows in it."""

from ettwatch_clickhouse.store import Store

__all__ = ["broken_parts"]

_BROKEN = """
SELECT table, count() FROM system.detached_parts
WHERE database = currentDatabase() AND startsWith(reason, 'broken') GROUP BY table ORDER BY table
"""


def broken_parts(store: Store) -> dict[str, int]:
    """Return how many parts of each table were found damaged and are put aside.

    Raises:
        StoreError: It cannot be asked.
    """
    return {str(table): int(str(count)) for table, count in store.query(_BROKEN).rows}
