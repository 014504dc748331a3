"""The start-up runner: order, threads, failures that name their step, deadlines that name what hangs."""

import contextvars
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_trainer.remedies.startup import Startup, StartupError, runner
from support.remedies_recorder import Told

pytestmark = pytest.mark.torch


def fail() -> None:
    raise KeyError("no such bucket")


def nothing() -> None:
    return None


def test_steps_that_do_not_wait_for_each_other_run_at_the_same_time() -> None:
    meet = threading.Barrier(3, timeout=60)
    done = Startup(deadline_s=60).add("a", meet.wait).add("b", meet.wait).add("c", meet.wait, here=True).run()
    assert sorted(done.values()) == [0, 1, 2]


@given(st.integers(1, 8), st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7))))
def test_nothing_begins_before_what_it_waits_for_has_ended(count: int, edges: set[tuple[int, int]]) -> None:
    waits = {number: {str(b) for a, b in edges if a == number and b < number} for number in range(count)}
    events: list[tuple[str, int]] = []

    def step(number: int) -> Callable[[], int]:
        def call() -> int:
            events.append(("began", number))
            events.append(("ended", number))
            return number

        return call

    startup = Startup(deadline_s=60)
    for number in reversed(range(count)):  # what a step waits for may be added after it
        startup.add(str(number), step(number), after=sorted(waits[number]), here=number % 3 == 0)
    assert startup.run() == {str(number): number for number in range(count)}
    for number in range(count):
        for before in waits[number]:
            assert events.index(("ended", int(before))) < events.index(("began", number))


def test_a_step_is_given_the_results_that_it_needs_in_their_order() -> None:
    startup = Startup().add("one", lambda: 1).add("two", lambda: 2)
    startup.add("both", lambda two, one: (two, one), needs=["two", "one"], after=["last"]).add("last", nothing)
    assert startup.run()["both"] == (2, 1)


def test_only_what_is_pinned_runs_in_the_calling_thread() -> None:
    startup = Startup().add("here", threading.get_ident, here=True).add("there", threading.get_ident)
    done = startup.add("after", threading.get_ident, after=["there"], here=True).run()
    assert done["here"] == done["after"] == threading.get_ident() != done["there"]


def test_a_pinned_step_holds_nothing_up_that_does_not_wait_for_it() -> None:
    reached = threading.Event()
    startup = Startup(deadline_s=60).add("here", lambda: reached.wait(60), here=True)
    startup.add("first", nothing).add("second", nothing, after=["first"]).add("third", reached.set, after=["second"])
    assert startup.run()["here"] is True


def test_the_first_failure_names_its_step_and_nothing_more_begins() -> None:
    begun: list[str] = []
    released = threading.Event()
    startup = Startup(deadline_s=60)
    startup.add("slow", lambda: released.wait(60))
    startup.add("read", fail, after=["open"]).add("open", nothing)
    startup.add("train", lambda: begun.append("train"), after=["read"])
    startup.add("report", lambda: begun.append("report"), after=["slow"], here=True)
    with pytest.raises(StartupError, match="step read failed: KeyError: 'no such bucket'") as raised:
        startup.run()
    assert raised.value.step == "read"
    assert isinstance(raised.value.__cause__, KeyError)
    assert "still running: slow" in str(raised.value)
    assert "never begun: train, report" in str(raised.value)
    assert startup.cancelled.is_set()
    released.set()
    time.sleep(0.05)
    assert begun == []


def test_a_pinned_step_that_fails_is_named_as_well() -> None:
    with pytest.raises(StartupError, match="step here failed: KeyError") as raised:
        Startup().add("here", fail, here=True).run()
    assert raised.value.step == "here"


def test_a_step_that_ends_its_thread_is_a_failure() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(StartupError, match="step leave failed: SystemExit: 3"):
        Startup(deadline_s=60).add("leave", leave).run()


def hang_in_the_store(there: threading.Event, released: threading.Event) -> None:
    there.set()
    released.wait(120)


def test_a_deadline_names_what_hangs_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    there, released = threading.Event(), threading.Event()
    passed = 0.0
    monkeypatch.setattr(runner, "monotonic", lambda: time.monotonic() + passed)

    def nearly() -> None:
        """Only now, when all is as it is to be told, the deadline is near."""
        nonlocal passed
        assert there.wait(60)
        passed = 999.5

    startup = Startup(deadline_s=1000).add("read", lambda: hang_in_the_store(there, released)).add("other", nothing)
    startup.add("train", nothing, after=["read"]).add("nearly", nearly, after=["other"], here=True)
    began = time.monotonic()
    with pytest.raises(StartupError, match=r"did not end within 1000 s: read has run for .* s \(in .*\)") as raised:
        startup.run()
    released.set()
    assert time.monotonic() - began < 100
    assert raised.value.step == "read"
    assert "never begun: train" in str(raised.value)
    assert "other" not in str(raised.value)


def test_steps_that_wait_for_each_other_or_for_nobody_are_refused_before_any_runs() -> None:
    ran: list[int] = []
    circle = Startup().add("free", lambda: ran.append(1)).add("a", nothing, after=["b"]).add("b", nothing, after=["a"])
    with pytest.raises(StartupError, match="wait for each other: (a after b after a|b after a after b)"):
        circle.run()
    with pytest.raises(StartupError, match="step a waits for z, which nobody added"):
        Startup().add("free", lambda: ran.append(1)).add("a", nothing, after=["z"]).run()
    with pytest.raises(StartupError, match="wait for each other"):
        Startup().add("a", nothing, needs=["a"]).run()
    assert ran == []


def test_a_name_twice_a_second_run_and_a_bad_deadline_are_refused() -> None:
    startup = Startup().add("a", nothing)
    with pytest.raises(ValueError, match="'a' already"):
        startup.add("a", nothing)
    startup.run()
    with pytest.raises(StartupError, match="has run"):
        startup.run()
    for deadline in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="deadline_s"):
            Startup(deadline_s=deadline)
    assert Startup().run() == {}


def test_each_step_is_a_phase_told_from_its_own_thread() -> None:
    told = Told()
    startup = Startup(recorder=told.recorder).add("groups", nothing, phase="trainer_init.process_group_init")
    startup.add("quiet", nothing).add("read", fail, phase="trainer_init.checkpoint_load", after=["groups"])
    with pytest.raises(StartupError):
        startup.run()
    seen = [(phase.name, phase.outcome, phase.thread) for phase in told.phases]
    assert seen == [
        ("trainer_init.process_group_init", "ok", "startup-groups"),
        ("trainer_init.checkpoint_load", "error", "startup-read"),
    ]


def test_settings_of_the_calling_thread_hold_in_every_step() -> None:
    setting: contextvars.ContextVar[str] = contextvars.ContextVar("setting", default="none")
    setting.set("mine")
    assert Startup().add("there", setting.get).run() == {"there": "mine"}


def test_it_tells_how_long_each_step_took() -> None:
    startup = Startup().add("a", lambda: time.sleep(0.05)).add("b", nothing)
    startup.run()
    assert set(startup.seconds) == {"a", "b"}
    assert startup.seconds["a"] >= 0.05
