"""How a measure goes up and down with the hour and the day of the week, when nothing is wrong."""

import math
from typing import Final, TypeAlias

import numpy as np

from ettwatch_monitor.alerts.detect.calendar import BINS, WEEK_BLOCKS

__all__ = ["Floats", "Ints", "fit_hazard", "fit_levels"]

Floats: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"
Ints: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

_MEDIAN: Final = math.pi / 2
"""The variance of a median in relation to that of a mean, for normal samples."""
_NORMAL: Final = 1.4826
_SURE: Final = 2.0
"""Groups differ if their spread is so many standard deviations above what chance gives them."""
_SHRINK_EVENTS: Final = 20.0


def fit_levels(values: Floats, bins: Ints) -> Floats:
    """Return by how much each bin of the week lies above the whole.

    First the blocks of the day, then the weekdays, then each bin by itself: each from the medians of what the ones
    before left over. Each is drawn towards 0 as far as chance explains it (empirical Bayes), and counts for nothing
    where chance explains all of it: a profile that is made up would move the level of whole weeks. So a sparse stream
    has no profile, and a busy one its own.

    Args:
        values: The samples, already without what tells one kind of job from another.
        bins: The bin of each.
    """
    profile = np.zeros(BINS)
    every = np.arange(BINS)
    left = values - (np.median(values) if len(values) else 0.0)
    for group_of_bin in (every % WEEK_BLOCKS, every // WEEK_BLOCKS, every):
        step = _medians(left, group_of_bin[bins])
        profile += step[group_of_bin]
        left = left - step[group_of_bin[bins]]
    return profile


def _medians(values: Floats, groups: Ints) -> Floats:
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=BINS)
    ends = np.cumsum(sizes)
    found = np.zeros(BINS)
    known = np.flatnonzero(sizes)
    if len(known) < 2:
        return found
    ordered = values[order]
    medians = np.array([np.median(ordered[ends[group] - sizes[group] : ends[group]]) for group in known])
    chance = _MEDIAN * float(np.median(np.abs(values)) * _NORMAL) ** 2 / sizes[known]
    number = len(known)
    if float((medians**2 / np.maximum(chance, 1e-12)).sum()) < number + _SURE * math.sqrt(2 * number):
        return found
    real = max(float((medians**2 - chance).mean()), 0.0)
    found[known] = medians * real / (real + chance + 1e-12)
    return found


def fit_hazard(counts: Floats, exposure: Floats) -> Floats:
    """Return by what factor events are likelier in each bin of the week than on the whole.

    Args:
        counts: Events by bin.
        exposure: What they could happen in, such as GPU-hours, by bin.
    """
    total, exposed = float(counts.sum()), float(exposure.sum())
    if total <= 0 or exposed <= 0:
        return np.ones(BINS)
    expected = exposure * (total / exposed)
    every = np.arange(BINS)
    factor = np.ones(BINS)
    for group_of_bin in (every % WEEK_BLOCKS, every // WEEK_BLOCKS):
        seen = np.bincount(group_of_bin, counts, minlength=BINS)
        awaited = np.bincount(group_of_bin, expected * factor, minlength=BINS)
        factor *= ((seen + _SHRINK_EVENTS) / (awaited + _SHRINK_EVENTS))[group_of_bin]
    return factor
