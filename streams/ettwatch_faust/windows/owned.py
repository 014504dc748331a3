"""What one process owns at the moment, and where it reads. For one event loop."""

from dataclasses import dataclass, field
from typing import TypeAlias

from ettwatch_faust.place import Place
from ettwatch_faust.windows.merge_lane import MergeLane
from ettwatch_faust.windows.source_lane import SourceLane

__all__ = ["Lane", "Owned"]

Lane: TypeAlias = SourceLane | MergeLane


@dataclass(slots=True)
class Owned:
    """A partition of one stage.

    Attributes:
        lane: Its work.
        stage: 1 or 2.
        places: Scope topic, where it is read.
        snapshot_s: When its next snapshot is due, by a monotonic clock.
        written: Where it read when the last one was written.
        moved_s: By topic, when a record came last, or was sought, by a monotonic clock.
    """

    lane: Lane
    stage: int
    places: dict[str, Place] = field(default_factory=dict)
    snapshot_s: float = 0.0
    written: dict[str, int] = field(default_factory=dict)
    moved_s: dict[str, float] = field(default_factory=dict)

    @property
    def offsets(self) -> dict[str, int]:
        """Scope topic, where to go on."""
        return {topic: place.next for topic, place in self.places.items()}
