"""Whatever is said with the end of an attempt, the end itself is told."""

from pathlib import Path

import pytest

from ettwatch_schemas import AttemptEnded
from support.spooled import events, python

BAD = "class Bad:\n    def __str__(self): raise RuntimeError('no')\n    __repr__ = __str__\n"


@pytest.mark.parametrize(
    ("call", "message", "code"),
    [
        ("rec.failed(Bad())", "<Bad>", None),
        ("rec.end('failed', message=ValueError('x'))", "ValueError: x", None),
        ("rec.end('failed', message=Bad())", "<Bad>", None),
        ("rec.end('failed', message=3)", "<int>", None),
        ("rec.end('failed', message='')", None, None),
        ("rec.failed('x', exit_code='3')", "x", None),
        ("rec.failed('x', exit_code=float('nan'))", "x", None),
        ("rec.failed('x', exit_code=10**30)", "x", None),
        ("rec.failed('x', exit_code=-11)", "x", -11),
        ("rec.failed('x', exit_code=True)", "x", 1),
        ("rec.failed('x', exit_code=numpy.int64(3))", "x", 3),
        ("rec.failed(ValueError('\\ud800'), cause=['a'])", "ValueError: ?", None),
        ("rec.end(['failed'])", None, None),
    ],
)
def test_a_failure_is_told_whatever_comes_with_it(tmp_path: Path, call: str, message: str | None, code: int) -> None:
    done = python(f"import ettwatch, numpy\n{BAD}rec = ettwatch.init(job='j')\n{call}\nrec.end()", tmp_path)
    assert done.returncode == 0, done.stderr
    (ended,) = (event for event in events(tmp_path) if isinstance(event, AttemptEnded))
    assert (ended.outcome, ended.message, ended.exit_code) == ("failed", message, code)


@pytest.mark.parametrize(("argument", "code"), [("True", 1), ("10**30", None), ("'bye'", 1)])
def test_an_odd_exit_is_told(tmp_path: Path, argument: str, code: int | None) -> None:
    python(f"import ettwatch, sys\nwith ettwatch.init(job='j'): sys.exit({argument})", tmp_path)
    (ended,) = (event for event in events(tmp_path) if isinstance(event, AttemptEnded))
    assert (ended.outcome, ended.exit_code) == ("failed", code)
