"""`ettwatch simulate`."""

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner, Result

from ettwatch_app.commands.simulate import simulate
from ettwatch_schemas import Event, decode_message
from ettwatch_sim.life import in_order, preset, summaries
from ettwatch_sim.life import simulate as events_of

SMALL = ("--profile", "retrieval", "--days", "0.5", "--seed", "4", "--jobs", "5")
SCENARIO = preset("retrieval").but(days=0.5, jobs=5)


def ask(*words: str, **env: str) -> Result:
    return CliRunner().invoke(simulate, words, env=env)


def told(lines: bytes) -> Iterator[Event]:
    for line in lines.splitlines():
        found, wrong = decode_message(line)
        assert not wrong
        yield from found


WANT = list(events_of(4, SCENARIO))


def test_to_standard_output() -> None:
    done = ask(*SMALL)
    assert done.exit_code == 0, done.stderr
    assert list(told(done.stdout_bytes)) == WANT
    assert f"{len(WANT):,} events in " in done.stderr


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz", "events.jsonl.zst"])
def test_to_a_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"what was there")
    done = ask(*SMALL, "--to", str(path))
    assert done.exit_code == 0, done.stderr
    data = path.read_bytes()
    if name.endswith(".gz"):
        data = gzip.decompress(data)
    elif name.endswith(".zst"):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert list(told(data)) == WANT


def test_to_a_folder(tmp_path: Path) -> None:
    target = str(tmp_path / "spool") + "/"
    done = ask(*SMALL, "--to", target)
    assert done.exit_code == 0, done.stderr
    files = list((tmp_path / "spool").iterdir())
    assert len(files) == 5
    found: list[Event] = []
    for path in files:
        mine = list(told(path.read_bytes()))
        assert len({event.job for event in mine}) == 1
        found += mine
    assert sorted((e.job, e.id) for e in found) == sorted((e.job, e.id) for e in WANT)
    again = ask(*SMALL, "--to", target)
    assert again.exit_code == 2
    assert "there are event files in it already; give an empty folder" in again.stderr


def test_the_ground_truth(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "days: 1\nclusters: [{name: c}]\nteams: [{name: t, models: [retrieval]}]\n"
        "injections: [{name: slow, what: stage, factor: 1.2, from_day: 0.5}]\n"
    )
    truth = tmp_path / "truth.jsonl"
    done = ask("--profile", str(scenario), "--truth", str(truth), "--to", str(tmp_path / "events.jsonl"))
    assert done.exit_code == 0, done.stderr
    lines = [json.loads(line) for line in truth.read_text().splitlines()]
    assert lines[0]["is"] == "scenario"
    assert (lines[0]["seed"], lines[0]["days"]) == (1, 1)
    (injected,) = (line for line in lines if line["is"] == "injected")
    assert (injected["name"], injected["factor"]) == ("slow", 1.2)
    assert injected["since"] == lines[0]["begin"] + 43_200_000_000
    kinds = {line["is"] for line in lines}
    assert kinds >= {"start", "job_done", "hours"}
    from ettwatch_sim.life import load_scenario

    assert len(lines) - 2 == len(list(summaries(1, load_scenario(scenario))))


def test_now_and_remedies() -> None:
    before = time.time_ns() // 1_000
    done = ask("--profile", "retrieval", "--jobs", "1", "--begin", "now", "--remedies", "compile_cache,overlap")
    first = next(told(done.stdout_bytes))
    assert before <= first.ts < before + 2 * 86_400_000_000
    assert b"model_publish" in done.stdout_bytes
    assert b"model_publish" not in ask("--profile", "retrieval", "--jobs", "1", "--remedies", "all").stdout_bytes


def test_at_a_rate() -> None:
    words = ("--profile", "retrieval", "--jobs", "1", "--days", "2")
    count = len(list(in_order(1, preset("retrieval").but(jobs=1, days=2.0))))
    began = time.monotonic()
    done = ask(*words, "--rate", f"{count * 2}/s")
    assert done.exit_code == 0
    assert time.monotonic() - began > 0.4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--profile", "nothing"), "there is no profile 'nothing', and it cannot be read as a file"),
        (("--days", "-1"), "days: -1"),
        (("--begin", "soon"), "'soon' is no time; write 2026-01-05"),
        (("--remedies", "overlaps"), "'overlaps' is none of"),
        (("--rate", "fast"), "is no rate; write max"),
        (("--to", "/nowhere/at/all/x.jsonl"), "cannot write /nowhere/at/all/x.jsonl: No such file"),
        (("--to", "/dev/full"), "cannot write /dev/full: No space left on device"),
        (("--truth", "/nowhere/x"), "cannot write /nowhere/x: No such file"),
        (("--to", "kafka"), "no Kafka broker is named"),
        (("--to", "kafka", "--bootstrap", "127.0.0.1:1", "--timeout", "1"), "cannot use the Kafka brokers"),
    ],
)
@pytest.mark.usefixtures("swept")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <s.*[sS]ocket fd:pytest.PytestUnraisableExceptionWarning")
def test_what_cannot_be_done(words: tuple[str, ...], said: str) -> None:
    done = ask(*SMALL, *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
