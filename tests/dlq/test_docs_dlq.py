"""The page on dead letters tells of every code and every option."""

import re
from pathlib import Path

import click
import pytest

from ettwatch_app.commands.dlq import dlq
from ettwatch_app.dlq import LETTER_CODES
from ettwatch_app.sink.content import BAD_ACCEPTED, BAD_UPDATE
from ettwatch_schemas import CODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/dlq.md").read_text(encoding="utf-8")
TOLD = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)


def test_every_code_has_a_row_and_no_other_has() -> None:
    assert sorted(TOLD) == sorted(LETTER_CODES)


def test_every_code_that_can_occur_is_known() -> None:
    source = (ROOT / "streams/ettwatch_faust/intake.py").read_text(encoding="utf-8")
    of_worker = set(re.findall(r'_letter\(\s*origin,\s*"(\w+)"', source)) | set(
        re.findall(r'^    "(\w+)": \($', source, re.MULTILINE)
    )
    assert {"wrong_key", "late"} <= of_worker, "the codes were not found in the source: the pattern is wrong"
    assert (of_worker | {BAD_ACCEPTED, BAD_UPDATE}) - set(CODES) == set(LETTER_CODES) - set(CODES)


@pytest.mark.parametrize("name", sorted(dlq.commands))
def test_every_option_is_told(name: str) -> None:
    options = {word for each in dlq.commands[name].params if isinstance(each, click.Option) for word in each.opts}
    assert f"\n## ettwatch dlq {name}\n" in PAGE
    assert not {word for word in options if f"`{word}" not in PAGE}
