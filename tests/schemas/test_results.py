from typing import Any

import pytest
from pydantic import ValidationError

from ettwatch_schemas import AttemptSummary, JobSummary, PhaseSpan, Segment
from support.examples import ATTEMPT, JOB


@pytest.mark.parametrize(("model", "values"), [(AttemptSummary, ATTEMPT), (JobSummary, JOB)])
def test_summaries_are_frozen_and_whole(model: type[AttemptSummary | JobSummary], values: dict[str, Any]) -> None:
    summary = model(**values)
    assert summary.model_dump() == values
    assert model.model_validate_json(summary.model_dump_json()) == summary
    with pytest.raises(ValidationError, match="frozen"):
        summary.job = "other"  # type: ignore[misc]
    for name in values:
        with pytest.raises(ValidationError, match=name):
            model(**{other: value for other, value in values.items() if other != name})
    with pytest.raises(ValidationError, match="extra"):
        model.model_validate(values | {"typo": 1})


@pytest.mark.parametrize(
    ("name", "value"), [("status", "done"), ("e2e_s", float("nan")), ("gpus", None), ("ttr_s", [None])]
)
def test_a_summary_refuses_what_no_reader_expects(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        JobSummary(**JOB | {name: value})


def test_segments_and_spans_are_plain_tuples() -> None:
    assert Segment("j", 0, "shutdown", 1, 2, 8) == ("j", 0, "shutdown", 1, 2, 8)
    assert Segment._fields == ("job", "attempt", "stage", "start", "end", "gpus")
    assert PhaseSpan._fields == (
        "job",
        "attempt",
        "phase",
        "start",
        "end",
        "ranks",
        "background",
        "container",
        "charged",
        "hidden",
        "last_rank",
        "behind",
        "open",
    )
