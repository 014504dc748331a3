"""The progress bar: for people who wait, and for nobody else."""

import io
import sys

import pytest

from ettwatch_app.commands import _meter
from ettwatch_app.commands._meter import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(bar: Bar) -> None:
    with bar:
        bar.begin("reading", 100)
        bar.advance(40)
        bar.advance(20)
        bar.begin("adding up", 10)
        bar.set(10, 10)


@pytest.mark.parametrize(
    ("stream", "quiet_s", "shown"), [(Terminal(), 0.0, True), (Terminal(), 60.0, False), (io.StringIO(), 0.0, False)]
)
def test_it_is_shown_on_a_terminal_after_a_while(
    stream: io.StringIO, quiet_s: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_meter, "_QUIET_S", quiet_s)
    work(Bar())
    assert ("adding up" in stream.getvalue()) is shown
    assert ("100%" in stream.getvalue()) is shown
    if not shown:
        assert stream.getvalue() == ""
