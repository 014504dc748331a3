"""A cluster as the watcher sees it, change by change."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ettwatch_schemas import Event, JobSummary, decode_event
from ettwatch_sources import line_of
from ettwatch_sources.kubernetes.folder import Folder
from ettwatch_sources.kubernetes.pods import OWNER_LABELS
from ettwatch_sources.kubernetes.reflector import Change
from ettwatch_sources.kubernetes.resources import WATCHED
from support import kubernetes_objects as k
from support.imported import folded


def us(clock: str) -> int:
    return round(datetime.fromisoformat(k.at(clock)).replace(tzinfo=UTC).timestamp()) * 1_000_000


class Cluster:
    """A folder that has listed everything that there is, and what it told."""

    def __init__(self, kinds: Sequence[str] = WATCHED) -> None:
        self.folder = Folder("c1", "test", kinds)
        self.events: list[Event] = []
        for kind in ("Workload", "JobSet", *(f"Pod/{kind}" for kind, _ in OWNER_LABELS)):
            assert not list(self.folder.synced(kind, 0))

    def saw(self, clock: str, kind: str, item: dict[str, Any], deleted: bool = False) -> "Cluster":
        told = [*self.folder.change(Change(kind, deleted, item), us(clock)), *self.folder.tick(us(clock))]
        self.events += [decode_event(line_of(one)) for one in told]
        return self

    def later(self, clock: str) -> "Cluster":
        self.events += [decode_event(line_of(one)) for one in self.folder.tick(us(clock))]
        return self

    @property
    def job(self) -> JobSummary:
        (shot,) = folded(self.events).values()
        return shot.summary

    def ends(self) -> list[tuple[Any, ...]]:
        found = [event for event in self.events if event.kind == "attempt_ended"]
        return [(event.attempt, event.outcome, event.cause) for event in found]
