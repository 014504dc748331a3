import re
from pathlib import Path

import pytest

from ettwatch.settings import VARIABLES, read
from support.spooled import Recording, python

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "instrument.md").read_text(encoding="utf-8")


def test_what_holds_where_nothing_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read({})._asdict() == {
        "disabled": False,
        "spool": str(tmp_path / ".ettwatch" / "spool"),
        "fsync": False,
        "queue_events": 10_000,
        "report_every_s": 30,
        "heartbeat_every_s": 60,
        "progress_all": False,
        "exit_s": 2,
        "spool_bytes": 512_000_000,
        "brokers": None,
    }
    assert read({"ETTWATCH_DATA": "/data"}).spool == "/data/spool"
    assert read({"ETTWATCH_DATA": "/data", "ETTWATCH_SPOOL": "here"}).spool == str(tmp_path / "here")
    assert read({"ETTWATCH_SPOOL": "/no"}, spool=Path("/given")).spool == "/given"


@pytest.mark.parametrize(
    ("name", "value", "field", "used"),
    [
        ("ETTWATCH_REPORT_EVERY_S", "soon", "report_every_s", 30),
        ("ETTWATCH_REPORT_EVERY_S", "0", "report_every_s", 30),
        ("ETTWATCH_REPORT_EVERY_S", "nan", "report_every_s", 30),
        ("ETTWATCH_HEARTBEAT_EVERY_S", "-5", "heartbeat_every_s", 60),
        ("ETTWATCH_QUEUE_EVENTS", "1e99", "queue_events", 10_000),
        ("ETTWATCH_FSYNC", "perhaps", "fsync", False),
        ("ETTWATCH_DISABLED", "perhaps", "disabled", False),
        ("ETTWATCH_PROGRESS_RANKS", "0-3", "progress_all", False),
    ],
)
def test_a_value_that_makes_no_sense_is_warned_of_and_not_used(
    name: str, value: str, field: str, used: object, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert getattr(read({name: value}), field) == used
    (record,) = caplog.records
    assert name in record.message
    assert repr(value) in record.message


@pytest.mark.parametrize(
    "env",
    [{"ETTWATCH_ATTEMPT": "x"}, {"ETTWATCH_RANK": "-1"}, {"RANK": "none"}, {"ETTWATCH_GPUS": "all"}],
    ids=str,
)
def test_an_identity_that_makes_no_sense_costs_one_warning_and_the_recording(spool: Path, env: dict[str, str]) -> None:
    code = """
        import ettwatch
        with ettwatch.init(job="job") as rec, rec.training():
            for n in rec.track(range(3)):
                with rec.phase("wasted_training.evaluation"): rec.step(1)
        print(rec.enabled)
    """
    done = python(code, spool, env)
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert done.stderr.count("\n") == 1
    assert "nothing is recorded" in done.stderr
    assert not spool.exists()


def test_settings_that_make_no_sense_do_not_cost_the_recording(recording: Recording) -> None:
    recording.start({"ETTWATCH_REPORT_EVERY_S": "soon", "ETTWATCH_QUEUE_EVENTS": "many"}).end()
    assert recording.events("job_ended")


def test_the_page_tells_of_every_variable_as_the_code_has_it() -> None:
    rows = dict(re.findall(r"^\| `(ETTWATCH_\w+)` \| (.+) \|$", PAGE, re.MULTILINE))
    assert rows == {name: f"{default} | {meaning}" for name, default, meaning in VARIABLES}


def test_every_variable_that_the_sdk_reads_is_in_the_list() -> None:
    code = "".join(path.read_text() for path in (ROOT / "producers" / "ettwatch").rglob("*.py"))
    assert set(re.findall(r"\bETTWATCH_[A-Z_]*[A-Z]\b", code)) == {name for name, _, _ in VARIABLES}
