"""Which hooks are wanted, by ETTWATCH_AUTO_OFF."""

from collections.abc import Mapping
from typing import Final

from ettwatch.log import warn

HOOKS: Final = ("group", "compile", "optimizer", "loader", "save", "load", "dcp")
"""Names of the hooks. docs/auto.md says what each does."""


def wanted(env: Mapping[str, str]) -> frozenset[str]:
    """Return the hooks that are not switched off. A name that is none is warned of."""
    off = {word.strip().lower() for word in env.get("ETTWATCH_AUTO_OFF", "").split(",") if word.strip()}
    if "all" in off:
        return frozenset()
    strange = sorted(off - set(HOOKS))
    if strange:
        warn(
            "setting:ETTWATCH_AUTO_OFF",
            f"ETTWATCH_AUTO_OFF: there is no hook {', '.join(strange)}; there are {', '.join(HOOKS)}, and all",
        )
    return frozenset(HOOKS) - off
