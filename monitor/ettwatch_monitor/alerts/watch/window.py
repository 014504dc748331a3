"""Planned maintenance: what happens in it says nothing of the usual level. And the record of what is left out."""

from dataclasses import dataclass

__all__ = ["Excluded", "Window"]


@dataclass(frozen=True, slots=True)
class Window:
    """A time of planned maintenance.

    Attributes:
        start: Its begin, in microseconds.
        end: Its end.
        reason: What for.
        team: Only for the jobs of this team; None is all. The same for `model` and `cluster`.
        model: See there.
        cluster: See there.
    """

    start: int
    end: int
    reason: str = ""
    team: str | None = None
    model: str | None = None
    cluster: str | None = None

    def of(self, team: str, model: str, cluster: str) -> bool:
        """Whether it is for such a job."""
        return self.team in (None, team) and self.model in (None, model) and self.cluster in (None, cluster)

    def overlap(self, start: int, end: int) -> int:
        """Return how much of a stretch of time lies in it, in microseconds."""
        return max(0, min(end, self.end) - max(start, self.start))

    @property
    def where(self) -> str:
        """What it is for, in words."""
        named = [
            f"{name}={value}"
            for name, value in (("team", self.team), ("model", self.model), ("cluster", self.cluster))
            if value
        ]
        return ", ".join(named) or "everything"


@dataclass(frozen=True, slots=True)
class Excluded:
    """What a window left out.

    Attributes:
        window: The window.
        starts: Start-ups and recoveries that touch it.
        attempts: Attempts whose shares are not counted, because more than a tenth of their time lies in it.
        failures: Failures in it.
        gpu_hours: GPU-hours held in it.
    """

    window: Window
    starts: int
    attempts: int
    failures: int
    gpu_hours: float
