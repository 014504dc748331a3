"""Secrets: read from a file or a variable when they are needed, and shown nowhere."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ettwatch_monitor.alerts.deliver.channel import Unavailable

__all__ = ["Secret"]

_MOST_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is, or the text itself where it is none."""

    kind: Literal["file", "variable", "text"]
    name: str = field(repr=False)
    env: Mapping[str, str] = field(repr=False, compare=False, default_factory=lambda: os.environ)

    def read(self) -> str:
        """Return it, without the end of its line. It is read each time: it may be changed without a restart.

        Raises Unavailable, with the name of the file or the variable.
        """
        if self.kind == "text":
            return self.name
        if self.kind == "variable":
            value = self.env.get(self.name, "").strip()
            if not value:
                raise Unavailable(f"the variable {self.name} is not set; set it to the secret")
            return self._line(value)
        try:
            with Path(self.name).open("rb") as file:
                value = file.read(_MOST_BYTES).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise Unavailable(f"cannot read {self.name}: {why}; correct its name or its rights") from None
        if not value:
            raise Unavailable(f"{self.name} is empty; write the secret into it")
        return self._line(value)

    def _line(self, value: str) -> str:
        # Whoever puts it into a header would be told all of it in the error.
        if not value.isprintable():
            raise Unavailable(f"{self.name} holds more than one line, or what cannot be printed; leave only the secret")
        return value
