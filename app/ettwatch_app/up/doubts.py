"""Refused events that may be old acquaintances.

A fold state forgets the ids of what is settled, and a job's state is dropped some time after its end. An event that
is told once more after that (a file that was dropped in twice, a log that was imported again) would be refused as late
or expired, although it changes nothing. So each refused event is looked up among the stored ones first: what is there
already is a duplicate, no reject.
"""

from typing import Final

from ettwatch_app.up.letters import Letter
from ettwatch_app.up.messages import Message, Refusal
from ettwatch_clickhouse import Store
from ettwatch_schemas import Event

LIMIT: Final = 20_000
"""So many are looked up at once at most."""

_WHY: Final = {
    "late": "arrived too late: it is further behind the newest event of its job than --lateness allows, or it would "
    "change what is settled; deliver events sooner, or fold the whole log with `ettwatch replay`",
    "expired": "its job was closed long ago and is no longer kept; give a new run a new job name, or fold the whole "
    "log with `ettwatch replay`",
}


class Doubts:
    """Collects refused events, and tells which of them are rejects."""

    def __init__(self) -> None:
        self._letters: list[tuple[str, str, Letter]] = []

    def __len__(self) -> int:
        return len(self._letters)

    def add(self, code: str, path: str, message: Message, event: Event) -> None:
        """Take in an event that was refused as `late` or `expired`."""
        reason = f"event {event.id!r} of job {event.job!r} {_WHY[code]}"
        self._letters.append((event.job, event.id, Letter(path, message, Refusal(code, reason, "ts", str(event.ts)))))

    def resolve(self, store: Store) -> tuple[list[Letter], int]:
        """Return the rejects, and how many were duplicates. What the writer has taken must be flushed before.

        Raises:
            StoreError: The stored events cannot be read; call again.
        """
        if not self._letters:
            return [], 0
        wanted: dict[str, list[str]] = {}
        for job, event_id, _ in self._letters:
            wanted.setdefault(job, []).append(event_id)
        stored = {(job, event_id) for job, ids in wanted.items() for event_id in _stored(store, job, ids)}
        rejects = [letter for job, event_id, letter in self._letters if (job, event_id) not in stored]
        return rejects, len(self._letters) - len(rejects)

    def clear(self) -> None:
        """Forget them: they are dealt with."""
        self._letters.clear()


def _stored(store: Store, job: str, ids: list[str]) -> list[str]:
    found = store.query(
        "SELECT DISTINCT id FROM events WHERE job = {job:String} AND id IN {ids:Array(String)}",
        {"job": job, "ids": ids},
    )
    return [str(row[0]) for row in found.rows]
