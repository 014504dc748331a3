"""What docs/remedies/preemption.md says: its example runs, and its options are those of the command."""

import re
from pathlib import Path

import pytest

from ettwatch_app.commands.preempt import preempt

PAGE = (Path(__file__).parents[2] / "docs/remedies/preemption.md").read_text()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(code, "preemption.md", "exec"), {})
    assert capsys.readouterr().out.strip() == code.rstrip().rpartition("# ")[2]


def test_every_option_is_on_the_page() -> None:
    options = {name for param in preempt.params for name in param.opts}
    assert options <= set(re.findall(r"--[a-z-]+", PAGE))
