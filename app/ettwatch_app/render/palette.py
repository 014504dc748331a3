"""One letter and one colour for each component and for effective training."""

from typing import NamedTuple

from ettwatch_schemas import COMPONENTS, EFFECTIVE


class Look(NamedTuple):
    """How a component is shown."""

    letter: str
    style: str
    """For text."""
    block: str
    """For a letter on a coloured ground."""


LOOKS = {
    EFFECTIVE: Look("=", "green", "black on green"),
    "scheduling": Look("S", "bright_black", "white on bright_black"),
    "hardware_setup": Look("H", "yellow", "black on yellow"),
    "trainer_init": Look("I", "blue", "white on blue"),
    "pt2_compilation": Look("C", "magenta", "white on magenta"),
    "wasted_training": Look("W", "red", "white on red"),
    "shutdown": Look("D", "cyan", "black on cyan"),
}

ORDER = (EFFECTIVE, *COMPONENTS)

STATUS_STYLES = {
    "succeeded": "green",
    "training": "green",
    "failed": "red",
    "lost": "red",
    "silent": "yellow",
    "recovering": "yellow",
    "cancelled": "yellow",
}
