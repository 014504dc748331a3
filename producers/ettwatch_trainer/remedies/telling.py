"""A phase where there is a recorder, and nothing where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ettwatch import Recorder


class _Nobody:
    """Stands in for a span that nobody hears of."""

    def set(self, **attrs: object) -> None:
        """Do nothing."""


@contextmanager
def phase(recorder: Recorder | None, name: str | None, attrs: Mapping[str, object] | None = None) -> Iterator[Any]:
    """A phase of `recorder`, if both are given; yields what takes further attributes by `set`."""
    if recorder is None or name is None:
        yield _Nobody()
    else:
        with recorder.phase(name, attrs=attrs) as span:
            yield span
