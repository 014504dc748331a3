import time
from pathlib import Path

import pytest

from ettwatch.clock import Clock, boot_id
from support.spooled import Recording, python, timeline

MANY_MINUTES_US = 600_000_000
"""Less than the hour by which clocks are set here, more than any machine stands still."""


def test_a_wall_clock_that_is_set_back_bends_no_duration(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    rec = recording.start()
    real = time.time_ns
    with rec.phase("trainer_init.long"):
        monkeypatch.setattr(time, "time_ns", lambda: real() - 3_600_000_000_000)
        monkeypatch.setattr(time, "time", lambda: real() / 1e9 - 3600)
        time.sleep(0.05)
    with rec.training():
        rec.step(1)
        time.sleep(0.02)
        rec.step(1)
    rec.end()
    found = timeline(recording.events())
    assert found.summary.flags == []
    (span,) = found.spans
    assert 50_000 <= span.end - span.start < MANY_MINUTES_US
    assert found.summary.effective_s >= 0.02


def test_processes_of_one_launcher_keep_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    handed = clock.hand_down()
    if boot_id() is None:
        assert handed is None
        return
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3_600_000_000_000)
    assert abs(Clock.take_over(handed).now() - clock.now()) < MANY_MINUTES_US
    assert clock.now() - Clock().now() > 3_000_000_000


@pytest.mark.parametrize("stands", range(15))
def test_standing_still_while_the_clocks_are_read_shifts_nothing(monkeypatch: pytest.MonkeyPatch, stands: int) -> None:
    """The process stands still for an hour, before the reading of that number."""
    read, ran = [0], [0]

    def reading(of: int) -> int:
        ran[0] += 3_600_000_000_000 if read[0] == stands else 10
        read[0] += 1
        return of + ran[0]

    wall = 1_700_000_000_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: reading(wall))
    monkeypatch.setattr(time, "monotonic_ns", lambda: reading(0))
    clock = Clock()
    assert clock.at(0) == pytest.approx(wall // 1000, abs=1)


@pytest.mark.parametrize("text", [None, "", "7", "1:2", "a:b:c", "-1:2:x", "1:2:another-boot", "1:2:3:4"])
def test_a_clock_of_elsewhere_is_not_taken_over(text: str | None) -> None:
    assert abs(Clock.take_over(text).now() - time.time_ns() // 1000) < MANY_MINUTES_US


def test_a_trainer_started_after_the_clock_was_set_back_is_in_its_attempt(spool: Path) -> None:
    if boot_id() is None:
        return
    later = time.time_ns() // 1000 + 3_600_000_000  # the launcher began an hour "later"
    handed = Clock(later).hand_down() or ""
    python("import ettwatch; ettwatch.init(job='job').end()", spool, {"ETTWATCH_CLOCK": handed})
    (found,) = Recording(spool).events("attempt_started")
    assert later <= found.ts < later + MANY_MINUTES_US
