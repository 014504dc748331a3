"""An outage: a large part of all running jobs fails within minutes. One alert for the fleet, at once."""

from dataclasses import replace

from ettwatch_monitor.alerts.detect import FLEET, Book, Incident, Settings, StreamKey
from ettwatch_monitor.alerts.watch.streams import Fleet

__all__ = ["OUTAGE", "check_outage"]

OUTAGE = StreamKey("outage", FLEET)
_MINUTE_US = 60_000_000


def check_outage(fleet: Fleet, now: int, book: Book, settings: Settings) -> tuple[Book, list[Incident], list[Incident]]:
    """Return the book, the new episode and the ended one.

    It begins where `outage_share` of the running jobs, and at least `outage_least`, failed within `outage_minutes`,
    and is over where less than half of that share did.
    """
    failed, running = len(fleet.failed), max(fleet.running, 1)
    standing = book.open(OUTAGE)
    if standing is None:
        if failed < settings.outage_least or failed < settings.outage_share * running:
            return book, [], []
        teams = sorted({team or "(no team)" for _, team in fleet.failed})
        named = ", ".join(teams[:10]) + (f" and {len(teams) - 10} more" if len(teams) > 10 else "")
        note = f"{failed} of {running} running jobs failed within {settings.outage_minutes} minutes, of {named}"
        since = now - settings.outage_minutes * _MINUTE_US
        one = Incident(OUTAGE, "outage", since, since, now, now, 0.0, 0.0, note=note)
        return book.written(one), [one], []
    if failed >= settings.outage_least and failed >= settings.outage_share * running / 2:
        return book, [], []
    ended = replace(standing.end(now, "recovered"), back=None)
    return book.written(ended), [], [ended]
