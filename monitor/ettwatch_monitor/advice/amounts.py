"""GPU time in words: in hours where there are some, else in minutes or seconds."""

from typing import Final, NamedTuple

__all__ = ["Unit", "amount", "unit_of"]


class Unit(NamedTuple):
    """A unit of GPU time: how many of it are one GPU-hour, and its name."""

    per_hour: int
    name: str

    def of(self, gpu_h: float) -> float:
        """Return GPU-hours in this unit, as they are shown: to a tenth."""
        return round(gpu_h * self.per_hour, 1)


_UNITS: Final = (Unit(1, "GPU-h"), Unit(60, "GPU-min"), Unit(3_600, "GPU-s"))


def unit_of(gpu_h: float) -> Unit:
    """Return the largest unit in which an amount is at least one; hours for nothing."""
    if gpu_h == 0:
        return _UNITS[0]
    return next((unit for unit in _UNITS if abs(gpu_h) * unit.per_hour >= 1), _UNITS[-1])


def amount(gpu_h: float) -> str:
    """Write GPU-hours as `1,234.5 GPU-h`, `12.0 GPU-min` or `3.4 GPU-s`."""
    unit = unit_of(gpu_h)
    return f"{unit.of(gpu_h):,.1f} {unit.name}"
