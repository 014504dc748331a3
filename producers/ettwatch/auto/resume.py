"""At which step an attempt goes on, where nobody says so: what can be found out, and what is assumed."""

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from ettwatch.identity import Identity
from ettwatch.log import trouble

UNKNOWN: Final = 2**40
"""Far beyond the steps of any attempt: where it is not known what is done again, nothing is called rework."""
_LOOKED_AT: Final = 8


def steps_done(optimizer: Any) -> int | None:
    """Return how many steps an optimizer that keeps count has done; None if it keeps none that can be read.

    A counter on a device is not read: that would wait for the device.
    """
    counts = [_count(state.get("step")) for state in islice(_states(optimizer), _LOOKED_AT)]
    return max((count for count in counts if count is not None), default=None)


def _states(optimizer: Any) -> Iterable[Mapping[str, Any]]:
    return (state for state in dict(optimizer.state).values() if isinstance(state, dict) and "step" in state)


def _count(value: Any) -> int | None:
    if isinstance(value, (int, float)):
        return int(value)
    device = getattr(getattr(value, "device", None), "type", None)
    return int(value.item()) if device == "cpu" and value.numel() == 1 else None


def first_step(optimizer: Any | None, who: Identity, loaded: bool) -> int:
    """Return how many steps were done before the one that was just done, the first of this attempt.

    `loaded`: a checkpoint was loaded before it.
    """
    try:
        done = steps_done(optimizer) if optimizer is not None else None
    except Exception as error:
        trouble("reading the optimizer's count of steps", error)
        done = None
    if done is not None:
        return max(done - 1, 0)
    if not loaded:
        return 0
    saved = _saved_before(who)
    return saved if saved is not None else UNKNOWN * who.attempt


def leave_saved(who: Identity, step: int) -> None:
    """Say to later attempts of this launch that a checkpoint of `step` was written."""
    if who.run_dir is not None:
        try:
            with open(os.path.join(who.run_dir, f"saved-{who.attempt}-{who.rank}"), "w", encoding="ascii") as file:
                file.write(str(step))
        except OSError as error:
            trouble("leaving word of a checkpoint", error)


def _saved_before(who: Identity) -> int | None:
    """Return the step of the newest checkpoint of an earlier attempt of this launch."""
    if who.run_dir is None:
        return None
    newest: tuple[int, int] | None = None
    try:
        for name in os.listdir(who.run_dir):
            kind, _, rest = name.partition("-")
            attempt = rest.partition("-")[0]
            if kind == "saved" and attempt.isdecimal() and int(attempt) < who.attempt:
                with open(os.path.join(who.run_dir, name), encoding="ascii") as file:
                    newest = max(newest or (0, 0), (int(attempt), int(file.read())))
    except (OSError, ValueError):
        return None
    return newest[1] if newest else None
