"""The table of alerts in ClickHouse: every state of every alert, for questions in SQL."""

from collections.abc import Callable, Sequence
from typing import Final

from ettwatch_clickhouse import Store, StoreError, StoreUnavailable
from ettwatch_monitor.alerts.deliver.channel import Plan, Refused, Unavailable
from ettwatch_monitor.alerts.deliver.message import Message, as_json, routing_labels

__all__ = ["TableChannel"]

_TABLE: Final = "alerts_log"
_COLUMNS: Final = (
    *("key", "episode", "seq", "id", "status", "severity", "starts_at", "ends_at", "updated_at", "silenced", "labels"),
    *("title", "body", "figures", "words", "sql_titles", "sql_queries", "written"),
)


class TableChannel:
    """Inserts messages. One that is inserted twice is one row of the view `alerts`.

    Args:
        name: Of the channel.
        plan: What goes to it.
        connect: Connects to the database.
    """

    def __init__(self, name: str, plan: Plan, connect: Callable[[], Store]) -> None:
        self.name = name
        self.plan = plan
        self._connect = connect
        self._store: Store | None = None

    def send(self, messages: Sequence[Message], now: int) -> None:
        """Insert messages. Raises Unavailable or Refused."""
        rows = [_row(message, now) for message in messages]
        try:
            if self._store is None:
                self._store = self._connect()
            self._store.insert(_TABLE, _COLUMNS, rows, token=",".join(message.id for message in messages))
        except StoreUnavailable as error:
            self.close()
            raise Unavailable(str(error)) from None
        except StoreError as error:
            self.close()
            if error.code is None and "does not fit" in str(error):
                raise Refused(str(error)) from None
            raise Unavailable(str(error)) from None

    def close(self) -> None:
        """Let go of the connection."""
        store, self._store = self._store, None
        if store is not None:
            store.close()


def _row(message: Message, now: int) -> tuple[object, ...]:
    alert = message.alert
    facts = as_json(message)["facts"]
    return (
        *(alert.key, message.episode, message.seq, message.id, alert.status, alert.severity),
        *(alert.starts_at, alert.ends_at, alert.updated_at, message.silenced, routing_labels(alert)),
        *(alert.title, alert.body),
        {name: float(value) for name, value in facts.items() if not isinstance(value, str)},
        {name: value for name, value in facts.items() if isinstance(value, str)},
        [title for title, _ in alert.sql],
        [query for _, query in alert.sql],
        now,
    )
