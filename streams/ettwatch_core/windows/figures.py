"""From the sums of a window to its figures. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from ettwatch_core.windows.amounts import (
    BASE_GPU,
    BASE_WALL,
    FAILURES,
    GPU,
    INFRA,
    LIVE,
    PREEMPTED,
    TTR,
    TTS,
    WALL,
    Amounts,
)
from ettwatch_core.windows.dims import Dim
from ettwatch_core.windows.histogram import quantile
from ettwatch_core.windows.sizes import MINUTE_US, Size
from ettwatch_schemas import COMPONENTS, EFFECTIVE, Window

__all__ = ["window_of"]

_US: Final = 1_000_000
_HOUR_S: Final = 3_600


def window_of(
    dim: Dim,
    size: Size,
    end: int,
    amounts: Amounts,
    live: Mapping[str, int],
    *,
    version: int,
    as_of: int,
    heard: int,
    parts: int,
) -> Window:
    """Return the figures of a window.

    Args:
        dim: What it is about.
        size: How long it is.
        end: Its end (minutes).
        amounts: Its sums.
        live: How jobs stand at its end, by amounts.
        version: Of the record.
        as_of: When it is made (µs).
        heard: How many partitions of the jobs have told all up to the end.
        parts: How many there are.
    """
    owner = dim.scope == "owner"
    wall, gpu = _stages(amounts, WALL), _stages(amounts, GPU)
    effective, gpu_effective = wall.pop(EFFECTIVE, 0), gpu.pop(EFFECTIVE, 0)
    lost, gpu_lost = sum(wall.values()), sum(gpu.values())
    e2e = amounts.get(BASE_WALL, 0) if owner else effective + lost
    gpu_e2e = amounts.get(BASE_GPU, 0) if owner else gpu_effective + gpu_lost
    waited = sum(us for stage, us in gpu.items() if _component(stage) == "scheduling")
    held = gpu_e2e - waited
    held_wall = e2e - sum(us for stage, us in wall.items() if _component(stage) == "scheduling")
    components = dict.fromkeys(COMPONENTS, 0)
    for stage, us in gpu.items():
        components[_component(stage)] = components.get(_component(stage), 0) + us
    nof = amounts.get(FAILURES, 0)
    return Window(
        v=1,
        scope=dim.scope,
        name=dim.name,
        length=size.name,
        start=(end - size.length) * MINUTE_US,
        end=end * MINUTE_US,
        version=version,
        as_of=as_of,
        heard=heard,
        parts=parts,
        e2e_s=e2e / _US,
        effective_s=None if owner else effective / _US,
        lost_s=lost / _US,
        ett_pct_unweighted=None if owner else _per_cent(effective, e2e),
        gpu_e2e_s=gpu_e2e / _US,
        gpu_effective_s=None if owner else gpu_effective / _US,
        gpu_lost_s=gpu_lost / _US,
        gpu_held_s=None if owner else held / _US,
        gpu_waited_s=None if owner else waited / _US,
        ett_pct=None if owner else _per_cent(gpu_effective, gpu_e2e),
        lost_pct=_per_cent(gpu_lost, gpu_e2e),
        components={name: us / _US for name, us in components.items()},
        stages={stage: us / _US for stage, us in sorted(gpu.items()) if us},
        **_times("tts", _counts(amounts, TTS)),
        **_times("ttr", _counts(amounts, TTR)),
        nof=nof,
        nof_infra=amounts.get(INFRA, 0),
        nof_preempted=amounts.get(PREEMPTED, 0),
        nof_per_1000_gpu_h=None if owner or held <= 0 else nof * 1000 * _HOUR_S * _US / held,
        mtbf_s=None if owner or not nof else held_wall / _US / nof,
        live={name[len(LIVE) :]: count for name, count in sorted(live.items())},
    )


def _component(stage: str) -> str:
    """Return the first dotted part: also of what only newer workers know."""
    return stage.partition(".")[0]


def _stages(amounts: Mapping[str, int], letter: str) -> dict[str, int]:
    return {name[1:]: us for name, us in amounts.items() if name[0] == letter}


def _counts(amounts: Mapping[str, int], letter: str) -> dict[int, int]:
    return {int(name[1:]): count for name, count in amounts.items() if name[0] == letter}


def _times(what: str, counts: Mapping[int, int]) -> dict[str, Any]:
    out: dict[str, Any] = {f"{what}_count": sum(counts.values())}
    for per_cent in (50, 90, 99):
        us = quantile(counts, per_cent)
        out[f"{what}_p{per_cent}_s"] = None if us is None else us / _US
    return out


def _per_cent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
