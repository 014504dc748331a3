"""One thing that the doctor looked at."""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do where it is not well.

    Attributes:
        area: `installed`, `environment`, `data folder`, `up`, `spool`, `owners`, `kafka`, `clickhouse`
            or `clock`.
        level: `ok`; `warn`: something works less well or waits; `fail`: something cannot work.
        what: What was found.
        do: What to do; empty where nothing is to be done.
    """

    area: str
    level: Level
    what: str
    do: str = ""

    def as_dict(self) -> dict[str, str]:
        """For `--format json`."""
        return asdict(self)
