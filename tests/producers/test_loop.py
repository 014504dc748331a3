import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from ettwatch.loop import Loop
from ettwatch.reporter import Reporter
from ettwatch.spans import Phase
from ettwatch.tracked import Batches
from ettwatch_schemas import Progress, TrainingEnded, TrainingStarted
from support.spooled import Recording, kinds, timeline, until

FAST = {"ETTWATCH_REPORT_EVERY_S": "0.3"}


def progress(recording: Recording) -> list[Progress]:
    return [event for event in recording.events("progress") if isinstance(event, Progress)]


def test_the_first_step_reports_and_then_only_time_does(recording: Recording) -> None:
    rec = recording.start()
    rec.training_started(position=100, step=7)
    for _ in range(50):
        rec.step(32)
    (first,) = progress(recording)
    assert (first.position, first.step, first.data_wait_us) == (132, 8, 0)
    rec.training_ended()
    assert kinds(recording.events())[2:] == ["training_started", "progress", "progress", "training_ended"]
    started, *_, ended = recording.events("training_started", "training_ended")
    assert isinstance(started, TrainingStarted)
    assert (started.position, started.step, started.report_every_s) == (100, 7, 30)
    assert isinstance(ended, TrainingEnded)
    assert (ended.position, ended.step) == (100 + 50 * 32, 57)


def test_progress_goes_out_three_times_as_often_as_is_promised(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reporter, "_beat", lambda reporter: 60.0)  # no late step is reported by anybody else
    rec = recording.start()
    rec.training_started(report_every_s=0.3)
    gaps: list[int] = []

    def often() -> bool:
        for _ in range(60):
            time.sleep(0.005)
            rec.step(1)
        sent = progress(recording)
        gaps[:] = [later.ts - earlier.ts for earlier, later in pairwise(sent)]
        return len(sent) > 4 and min(gaps) < 250_000  # a machine that is busy is late at times

    until(often)
    assert all(gap >= 90_000 for gap in gaps)
    sent = progress(recording)
    assert [event.position for event in sent] == sorted({event.position for event in sent})


def test_a_loop_that_stands_still_is_heard(recording: Recording) -> None:
    rec = recording.start(FAST)
    with rec.training(position=10):
        rec.step(5)
        rec.step(5)
        stepped = rec._loop.mark[2]
        until(lambda: [event.position for event in progress(recording)].count(20) >= 3)
    # The first step may be told of once more, if the second is late.
    (first, *_), (second, *rest) = (
        [event for event in progress(recording) if event.position == position] for position in (15, 20)
    )
    assert second.ts == rec._outbox.clock.at(stepped)  # that of the step, not of the report
    assert first.ts < second.ts < rest[-1].ts


def test_a_first_step_that_takes_long_is_heard_as_heartbeats(recording: Recording) -> None:
    rec = recording.start(FAST)
    rec.training_started()
    until(lambda: len(recording.events("heartbeat")) >= 2)
    assert not progress(recording)


def test_outside_the_loop_there_are_heartbeats(recording: Recording) -> None:
    rec = recording.start({"ETTWATCH_HEARTBEAT_EVERY_S": "0.1"})
    until(lambda: len(recording.events("heartbeat")) >= 2)
    pulse = rec._reporter._pulse
    assert pulse is not None
    rec.end()
    pulse._thread.join(60)  # it may have been in the middle of one
    sent = len(recording.events())
    time.sleep(0.15)
    assert len(recording.events()) == sent


def slow(batches: int, seconds: float) -> Iterator[int]:
    for number in range(batches):
        time.sleep(seconds)
        yield number


def test_waits_for_data_are_measured(recording: Recording) -> None:
    rec = recording.start(FAST)
    begin = time.monotonic_ns()
    with rec.training():
        for _ in rec.track(slow(4, 0.05)):
            time.sleep(0.02)
            rec.step(1)
    took_us = (time.monotonic_ns() - begin) // 1000
    (ended,) = recording.events("training_ended")
    assert isinstance(ended, TrainingEnded)
    assert ended.data_wait_us is not None
    assert 200_000 <= ended.data_wait_us < took_us - 80_000
    waits = [event.data_wait_us or 0 for event in progress(recording)]
    assert waits == sorted(waits)


def test_a_wait_that_goes_on_is_told_while_it_does(recording: Recording) -> None:
    rec = recording.start(FAST)
    rec.training_started()

    def told() -> int:
        return len({event.data_wait_us for event in progress(recording) if event.position == 1})

    def batches() -> Iterator[int]:
        yield 1
        until(lambda: told() >= 3)  # that of the step itself, and two while it waits
        yield 2

    for _ in rec.track(batches()):
        rec.step(1)


def test_a_first_batch_before_the_loop_is_a_phase_and_no_wait(recording: Recording) -> None:
    rec = recording.start()
    for number in rec.track(slow(3, 0.01)):
        if number == 0:
            rec.training_started()
        rec.step(1)
    rec.training_ended()
    starts = recording.events("phase_started")
    assert [getattr(event, "phase", None) for event in starts] == ["trainer_init.get_first_batch_data"]
    (ended,) = recording.events("training_ended")
    assert isinstance(ended, TrainingEnded)
    assert ended.data_wait_us is not None
    assert 20_000 <= ended.data_wait_us < rec._loop.mark[2] // 1000


def test_waits_in_a_phase_are_the_phase(recording: Recording) -> None:
    rec = recording.start()
    with rec.training():
        with rec.phase("wasted_training.evaluation"):
            assert list(rec.track(slow(2, 0.01))) == [0, 1]
        assert rec._loop.waited == 0


def test_a_tracked_loader_is_as_the_loader(recording: Recording) -> None:
    rec = recording.start()
    rec.training_started()
    sized = rec.track([1, 2, 3])
    assert len(sized) == 3  # type: ignore[arg-type]
    assert [list(sized), list(sized)] == [[1, 2, 3], [1, 2, 3]]
    assert not hasattr(rec.track(iter([1])), "__len__")
    assert list(rec.track([])) == []
    error = ValueError("mine")

    def broken() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(ValueError) as caught:
        list(rec.track(broken()))
    assert caught.value is error
    assert rec._loop.waiting == 0
    with pytest.raises(TypeError, match="not iterable"):
        list(rec.track(7))  # type: ignore[arg-type]


class Tensor:
    """Reading its value would wait for a device."""

    def __index__(self) -> int:
        raise AssertionError("it was read")

    __int__ = __str__ = __repr__ = __index__  # type: ignore[assignment]


@pytest.mark.parametrize("value", [Tensor(), -1, 2.5, float("nan"), "8", None, 2**63])
def test_what_is_no_count_is_not_read_and_warned_of_once(
    recording: Recording, value: int, caplog: pytest.LogCaptureFixture
) -> None:
    rec = recording.start()
    rec.training_started(position=3)
    for _ in range(3):
        rec.step(value)
    assert rec._loop.mark[:2] == (3, 3)
    rec.training_ended(position=value)
    assert [getattr(event, "position", None) for event in recording.events("training_ended")] == [3]
    assert len({record.message for record in caplog.records}) <= 2


def test_counts_of_other_types_count(recording: Recording) -> None:
    numpy = pytest.importorskip("numpy")
    rec = recording.start()
    rec.training_started()
    for value in (True, 2.0, numpy.int64(4)):
        rec.step(value)  # type: ignore[arg-type]
    assert rec._loop.mark[:2] == (7, 3)


@pytest.mark.parametrize("every", [0, -1, "often", float("nan")])
def test_a_silence_that_cannot_be_declared_is_the_setting(recording: Recording, every: float) -> None:
    rec = recording.start()
    rec.training_started(report_every_s=every)
    (started,) = recording.events("training_started")
    assert isinstance(started, TrainingStarted)
    assert started.report_every_s == 30


def test_only_rank_0_speaks_for_the_loop_unless_all_are_to(recording: Recording) -> None:
    for rank, env in enumerate(({}, FAST, {**FAST, "ETTWATCH_PROGRESS_RANKS": "all"})):
        rec = recording.start({**env, "ETTWATCH_RANK": str(rank)})
        with rec.training():
            rec.step(1)
    assert {event.rank for event in recording.events("training_started", "progress", "training_ended")} == {0, 2}


def test_steps_before_the_loop_is_told_of_count_from_0(recording: Recording, caplog: pytest.LogCaptureFixture) -> None:
    rec = recording.start()
    for _ in range(5):
        rec.step(2)
    (first,) = progress(recording)
    assert (first.position, first.step) == (2, 1)
    assert caplog.text.count("step() before training_started()") == 1
    rec.training_ended()
    for _ in range(5):
        rec.step(2)
    assert kinds(recording.events())[-2:] == ["progress", "training_ended"]


def test_a_loop_in_parts_goes_on_counting(recording: Recording) -> None:
    rec = recording.start()
    for _ in range(2):
        with rec.training():
            rec.step(4)
    rec.end()
    assert [getattr(event, "position", None) for event in recording.events("training_started", "training_ended")] == [
        0,
        4,
        4,
        8,
    ]
    summary = timeline(recording.events()).summary
    assert summary.flags == []
    assert summary.effective_s > 0


def test_an_exception_leaves_the_loop_open_and_the_last_step_is_told_at_its_time(recording: Recording) -> None:
    rec = recording.start()

    def train() -> None:
        with rec.training():
            rec.step(1)
            rec.step(1)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        train()
    at = rec._loop.mark[2]
    rec.failed("because")
    last = progress(recording)[-1]
    assert (last.position, last.ts) == (2, rec._outbox.clock.at(at))
    assert not recording.events("training_ended")


def test_a_reader_between_two_moves_sees_no_wait_twice() -> None:
    loop = Loop()
    loop.begin(0, 0, 10, True)
    assert list(Batches([1, 2], loop, lambda: Phase(lambda: None, "trainer_init"))) == [1, 2]
    waited = loop.waited
    loop.waiting = time.monotonic_ns()
    assert loop.wait_us(loop.waiting + 5_000_000) == (waited + 5_000_000) // 1000
    assert loop.wait_us(loop.waiting - 5_000_000) == waited // 1000
