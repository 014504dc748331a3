"""Numbers from a trainer: read without waiting for a device, refused without raising."""

from ettwatch.log import warn
from ettwatch.names import MAX_AMOUNT, MAX_EXIT_CODE, MAX_REPORT_EVERY_S, MIN_EXIT_CODE


def amount(name: str, value: object, least: int = 0, most: int = MAX_AMOUNT) -> int | None:
    """Return a count as an int; None for None and, with a warning, for what is no count from `least` to `most`.

    Only numbers of Python and numpy are read: reading a tensor could wait for its device.
    """
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value).__module__.partition(".")[0] in ("builtins", "numpy") and hasattr(value, "__index__"):
        number = int(value.__index__())
        if least <= number <= most:
            return number
        warn(f"amount:{name}", f"{name}={number} is out of range and is not used")
    else:
        warn(f"amount:{name}", f"{name} is a {type(value).__name__} and is not used; give an int")
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
    warn("report_every_s", f"report_every_s={value!r} is no number of seconds from 0.1; {default:g} is used")
    return default
