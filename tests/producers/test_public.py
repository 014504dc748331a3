import inspect
from pathlib import Path
from typing import get_args

import pytest

import ettwatch
from ettwatch import names, outbox
from ettwatch.noop import NoRecorder
from ettwatch.recorder import Recorder
from ettwatch_schemas import COMPONENTS, KINDS, Cause, Outcome, is_phase
from support.spooled import python


def test_importing_it_imports_nothing_heavy(spool: Path) -> None:
    code = """
        import sys
        before = set(sys.modules)
        import ettwatch
        new = set(sys.modules) - before
        assert not {name for name in new if name.startswith("ettwatch.")}, new
        rec = ettwatch.init(job="light")
        with rec.phase("trainer_init"): pass
        heavy = {"torch", "numpy", "pydantic", "kafka", "click", "asyncio", "logging", "dataclasses", "socket"}
        heavy |= {"ettwatch_schemas"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = python(code, spool)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_the_words_are_those_of_the_schemas() -> None:
    assert names.COMPONENTS == COMPONENTS
    assert get_args(Outcome) == names.OUTCOMES
    assert get_args(Cause) == names.CAUSES
    assert set(get_args(outbox.Kind)) == set(KINDS)


@pytest.mark.parametrize(
    "name",
    [
        *("trainer_init", "pt2_compilation.inductor.x_1", "trainer", "trainer_init.", "trainer_init.A", "", "a" * 300),
        *("trainer_init.x\n", "trainer_init.é", "trainer_init." + "x" * 187, "trainer_init." + "x" * 188),
    ],
)
def test_a_phase_is_one_here_where_it_is_one_there(name: str) -> None:
    assert names.is_phase(name) == is_phase(name)


def test_before_init_everything_can_be_called_and_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ettwatch.default._default", NoRecorder())  # another test may have made one
    rec = ettwatch.get()
    assert not rec.enabled

    @ettwatch.phase("trainer_init")
    def load() -> int:
        return 7

    with rec.phase("no such phase") as span:
        span.set(bytes=1)
    assert load() == 7
    with rec.training(position=5):
        loader = [1, 2]
        assert rec.track(loader) is loader
        rec.step("many")  # type: ignore[arg-type]
    with rec.checkpoint(asynchronous=True) as checkpoint:
        pass
    checkpoint.durable(bytes=3)
    with rec:
        rec.training_ended()
    rec.failed("no")
    rec.end("succeeded")
    assert not list(tmp_path.iterdir())


def test_the_recorder_that_does_nothing_takes_every_call() -> None:
    # What it inherits must be harmless by itself: these build blocks around what is overridden, or only read.
    harmless = {"phase", "training", "checkpoint", "enabled", "job", "attempt", "rank", "dropped"}
    public = {name for name in vars(Recorder) if not name.startswith("_")}
    assert public - harmless <= set(vars(NoRecorder))
    for name in public - harmless:
        assert (
            inspect.signature(getattr(Recorder, name)).parameters.keys()
            == inspect.signature(getattr(NoRecorder, name)).parameters.keys()
        )


def test_disabled_it_writes_nothing_and_starts_no_thread(spool: Path) -> None:
    code = """
        import sys, threading, ettwatch
        hook = sys.excepthook
        rec = ettwatch.init(job="job")
        with rec.phase("trainer_init"): pass
        with rec.training():
            for batch in rec.track([1]): rec.step(1)
        print(rec.enabled, threading.active_count(), sys.excepthook is hook)
        rec.end()
    """
    done = python(code, spool, {"ETTWATCH_DISABLED": "1"})
    assert (done.stdout, done.stderr) == ("False 1 True\n", "")
    assert not spool.exists()


def test_the_door_shows_what_it_names() -> None:
    assert dir(ettwatch) == sorted(ettwatch.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = ettwatch.nothing


def test_init_again_returns_the_recorder_that_there_is(spool: Path) -> None:
    code = """
        import ettwatch
        a = ettwatch.init(job="one"); b = ettwatch.init(job="two")
        assert a is b is ettwatch.get() and a.job == "one"
        a.end()
        c = ettwatch.init(job="three")
        assert c is not a and c.job == "three"
    """
    done = python(code, spool)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("init() was called before") == 1
