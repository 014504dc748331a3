"""What is tested: samples of a measure, failures and what they could happen in, and the name of each stream of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import numpy as np

from ettwatch_monitor.alerts.detect.calendar import HOUR_US
from ettwatch_monitor.alerts.detect.profile import Floats

__all__ = ["FLEET", "Exposure", "Failed", "Rate", "Sample", "Stream", "StreamKey", "Times", "in_order"]

_NO_STAGES: Final[Mapping[str, float]] = MappingProxyType({})
FLEET: Final = (("scope", "fleet"),)
"""The scope of everything."""


class StreamKey(NamedTuple):
    """The name of a stream: what is measured, and of whom.

    Attributes:
        metric: Such as ``tts`` or ``share.trainer_init``.
        scope: Labels in a fixed order, such as ``(("team", "ads"),)``.
    """

    metric: str
    scope: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.metric}|" + ",".join(f"{name}={value}" for name, value in self.scope)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the scope."""
        return dict(self.scope)


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of one attempt of a job.

    Attributes:
        ts: When it was complete, in microseconds.
        id: Unique in its stream; two samples with one id are one.
        job: The job, of which there may be several samples.
        value: Seconds, or a share from 0 to 1.
        team: Whose job it is.
        model: What it trains.
        cluster: Where.
        gpus: Of the attempt.
        stages: How the value divides over stages, where that is known.
        host: The host that came last, where that is known.
        cache_hit: Whether compiled code was found in a cache, where that is known.
    """

    ts: int
    id: str
    job: str
    value: float
    team: str = ""
    model: str = ""
    cluster: str = ""
    gpus: int = 1
    stages: Mapping[str, float] = field(default_factory=lambda: _NO_STAGES, hash=False)
    host: str | None = None
    cache_hit: bool | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """One failure of one attempt. Attributes as those of a Sample; `cause` in the words of ``attempt_ended``."""

    ts: int
    id: str
    job: str
    cause: str
    team: str = ""
    model: str = ""
    cluster: str = ""
    gpus: int = 1
    host: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """GPU-hours held, hour by hour.

    Attributes:
        start: The beginning of the first hour, in microseconds.
        hours: GPU-hours held in each hour from there on; of the last one until `end`.
        end: Until when they are known.
    """

    start: int
    hours: Floats
    end: int

    @property
    def edges(self) -> Floats:
        """Where the hours begin, and `end`: one more than there are hours."""
        edges = self.start + np.arange(len(self.hours) + 1, dtype=np.float64) * HOUR_US
        if len(self.hours):
            edges[-1] = min(max(float(self.end), edges[-2]), edges[-1])
        return edges


@dataclass(frozen=True, slots=True)
class Times:
    """A stream of measurements.

    Attributes:
        samples: In any order, some perhaps twice.
        ordered: They are as `in_order` returns them.
    """

    samples: Sequence[Sample]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Rate:
    """A stream of failures, and what they could happen in.

    Attributes:
        failures: In any order, some perhaps twice.
        exposure: GPU-hours held.
        ordered: The failures are as `in_order` returns them.
    """

    failures: Sequence[Failed]
    exposure: Exposure
    ordered: bool = False


Stream = Times | Rate
_Told = TypeVar("_Told", Sample, Failed)


def in_order(told: Iterable[_Told], now: int) -> list[_Told]:
    """Return what is not later than `now` in order of (ts, id), each id once.

    Of two with one id the later counts, then the larger, so that the order in which they were told plays no part.
    """
    chosen: dict[str, _Told] = {}
    for one in told:
        other = chosen.get(one.id)
        if one.ts <= now and (other is None or _rank(one) > _rank(other)):
            chosen[one.id] = one
    return sorted(chosen.values(), key=lambda one: (one.ts, one.id))


def _rank(one: "Sample | Failed") -> tuple[int, float, str]:
    return (one.ts, one.value, "") if isinstance(one, Sample) else (one.ts, 0.0, one.cause)
