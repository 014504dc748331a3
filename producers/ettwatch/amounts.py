"""Numbers from a trainer: read without waiting for a device, refused without raising."""

from typing import Any

from ettwatch.log import warn
from ettwatch.names import MAX_AMOUNT, MAX_EXIT_CODE, MAX_REPORT_EVERY_S, MIN_EXIT_CODE
from ettwatch.wire import shown


def amount(name: str, value: object, least: int = 0, most: int = MAX_AMOUNT) -> int | None:
    """Return a count as an int; None for None and, with a warning, for what is no count from `least` to `most`.

    Only numbers of Python and numpy are read: reading a tensor could wait for its device.
    """
    if value is None:
        return None
    number = _read(value)
    if number is None:
        warn(f"amount:{name}", f"{name} is a {type(value).__name__} and is not used; give an int")
    elif not least <= number <= most:
        warn(f"amount:{name}", f"{name}={number} is out of range and is not used")
        number = None
    return number


def _read(value: Any) -> int | None:
    if isinstance(value, float):
        return float.__int__(value) if float.is_integer(value) else None
    if type(value).__module__.partition(".")[0] in ("builtins", "numpy") and hasattr(value, "__index__"):
        try:
            return int(value.__index__())
        except TypeError:  # an array of several
            return None
    return None


def exit_code(value: object) -> int | None:
    """Return the exit code of a process as an int, None for what is none."""
    return amount("exit_code", value, MIN_EXIT_CODE, MAX_EXIT_CODE)


def report_every(value: object, default: float) -> float:
    """Return `value` as seconds if it can be declared as the longest silence, `default` for None or otherwise."""
    if value is None:
        return default
    if isinstance(value, (int, float)) and 0.1 <= value <= MAX_REPORT_EVERY_S:
        return float(value)
    warn("report_every_s", f"report_every_s={shown(value)} is no number of seconds from 0.1; {default:g} is used")
    return default
