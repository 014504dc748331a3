import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from ettwatch_schemas import KINDS, AttemptSummary, Event, JobSummary, encode_event, examples
from ettwatch_schemas import jsonschema as generator
from support.examples import ATTEMPT, JOB, events, plain

SCHEMAS: dict[str, dict[str, Any]] = {
    path.name.removesuffix(".schema.json"): json.loads(path.read_text("utf-8"))
    for path in generator.FOLDER.glob("*.schema.json")
}


def accepts(name: str, value: object) -> bool:
    return Draft202012Validator(SCHEMAS[name]).is_valid(value)


def test_committed_schemas_equal_the_generated_ones() -> None:
    committed = {path: path.read_text("utf-8") for path in generator.FOLDER.iterdir()}
    assert committed == generator.rendered(), "run python -m ettwatch_schemas.jsonschema"


def test_one_schema_for_each_kind_the_union_and_the_summaries() -> None:
    assert set(SCHEMAS) == {*KINDS, "event", "job_summary", "attempt_summary"}
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in examples()])
def test_examples_pass_their_schemas(data: bytes) -> None:
    found = json.loads(data)
    for event in found if isinstance(found, list) else [found]:
        assert [kind for kind in KINDS if accepts(kind, event)] == [event["kind"]]
        assert accepts("event", event)


@given(events())
def test_encoded_events_pass_their_schemas(event: Event) -> None:
    assert accepts(event.kind, json.loads(encode_event(event)))


@pytest.mark.parametrize(
    "changes",
    [
        {"v": ...},
        {"v": 2},
        {"kind": ...},
        {"kind": "new"},
        {"id": ...},
        {"job": ""},
        {"ts": 1_790_000_000},
        {"ts": "now"},
        {"attempt": ...},
        {"attempt": -1},
        {"position": True},
        {"position": 0.5},
        {"source": "me"},
    ],
)
def test_what_decoding_refuses_fails_the_schemas(changes: dict[str, object]) -> None:
    event = plain(**changes)
    assert not accepts("event", event)
    assert not accepts("progress", event)
    assert accepts("event", plain(newer=1))


def test_summaries_pass_their_schemas() -> None:
    assert accepts("job_summary", json.loads(JobSummary(**JOB).model_dump_json()))
    assert accepts("attempt_summary", json.loads(AttemptSummary(**ATTEMPT).model_dump_json()))
    assert not accepts("job_summary", {})


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "ettwatch_schemas.jsonschema", *args], capture_output=True, text=True
    )


def test_the_command_checks_the_committed_files() -> None:
    done = run("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_writing_and_checking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generator, "FOLDER", tmp_path / "v1")
    assert generator.main(["--check"]) == 1
    assert list(tmp_path.iterdir()) == []
    assert "progress.schema.json is out of date; run python -m ettwatch_schemas.jsonschema" in capsys.readouterr().out
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    (tmp_path / "v1" / "progress.schema.json").write_text("{}")
    (tmp_path / "v1" / "old.schema.json").write_text("{}")
    assert generator.main(["--check"]) == 1
    assert generator.main([]) == 0
    assert not (tmp_path / "v1" / "old.schema.json").exists()
    assert generator.main(["--check"]) == 0
