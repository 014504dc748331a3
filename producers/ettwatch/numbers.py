"""Whole numbers that say whose events these are: one that is malformed is refused, not guessed."""

from collections.abc import Mapping

from ettwatch.names import MAX_COUNT
from ettwatch.wire import shown


class BadIdentity(ValueError):
    """Job, attempt or rank is malformed: events under it would be filed wrongly."""


def whole(name: str, value: object, least: int = 0) -> int:
    """Return `value`, a number or its text, as an int from `least` to 2**31 - 1; else raise BadIdentity."""
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not least <= number <= MAX_COUNT:
        raise BadIdentity(f"{name}={shown(value)} is not a whole number from {least}")
    return number


def from_env(env: Mapping[str, str], name: str, least: int = 0) -> int | None:
    """Return an environment variable as an int, None if it is not set or empty; else raise BadIdentity."""
    text = env.get(name, "").strip()
    return whole(name, text, least) if text else None
