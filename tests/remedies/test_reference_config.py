"""The reference trainer's settings, the slowness that is injected, and what the bench makes of its runs."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ettwatch_app.remedies import Bench, Kept, NotKept, rounds, variants, workload
from ettwatch_app.remedies.measure import Figures
from ettwatch_app.remedies.running import RunFailed
from ettwatch_schemas import COMPONENTS
from ettwatch_trainer import ConfigError
from ettwatch_trainer.reference import (
    REMEDIES,
    ReferenceConfig,
    SlownessError,
    committed_slowness,
    no_slowness,
    read_slowness,
)
from ettwatch_trainer.reference.config import parse


def test_the_command_line_is_the_config(tmp_path: Path) -> None:
    config = dataclasses.replace(
        ReferenceConfig().only("overlap", "cheap_recovery"), out=tmp_path, steps=7, compile=False, open_s=0.25
    )
    assert parse(config.arguments()) == config
    assert parse([]) == ReferenceConfig()
    assert [name for name in REMEDIES if getattr(config, name)] == ["overlap", "cheap_recovery"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"steps": 0}, "--steps"),
        ({"batch": 3}, "--batch"),
        ({"storage_mb_s": float("inf")}, "--storage-mb-s"),
        ({"kill_at_step": 9, "steps": 8}, "--kill-at-step"),
        ({"kill_at_step": 3, "fail_rank": 2}, "--fail-rank"),
        ({"least_interval_s": 9.0, "most_interval_s": 8.0}, "--least-interval-s"),
    ],
)
def test_what_cannot_work_is_refused_by_name(changes: dict[str, float], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        ReferenceConfig(**changes)  # type: ignore[arg-type]


def test_an_unknown_remedy() -> None:
    with pytest.raises(ConfigError, match="sleep"):
        ReferenceConfig().only("sleep")


def test_batches_have_the_sizes_that_were_asked_for() -> None:
    config = ReferenceConfig(batch=512, batch_sizes=3)
    sizes = {config.size_of(step) for step in range(24)}
    assert len(sizes) == 3
    assert max(sizes) == 512
    assert {ReferenceConfig(batch_sizes=1).size_of(step) for step in range(24)} == {512}


def test_slowness_is_put_on_with_a_reason_for_each() -> None:
    slow = committed_slowness()
    assert all(len(one.why) > 40 for one in slow.values.values())
    put = slow.put_on(ReferenceConfig())
    assert {name: getattr(put, name) for name in slow.values} == {n: one.value for n, one in slow.values.items()}
    assert no_slowness().put_on(put) == ReferenceConfig()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("[]", "one object"),
        ('{"sleep": {"value": 1, "unit": "s", "why": "x"}}', "sleep"),
        ('{"open_s": {"value": 1, "unit": "s"}}', "value, unit and why"),
        ('{"open_s": {"value": -1, "unit": "s", "why": "x"}}', "at least 0"),
        ('{"open_s": {"value": true, "unit": "s", "why": "x"}}', "at least 0"),
        ('{"open_s": {"value": 1, "unit": "s", "why": " "}}', "reason"),
    ],
)
def test_a_bad_file_of_slowness(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "slow.json"
    path.write_text(text)
    with pytest.raises(SlownessError, match=said) as caught:
        read_slowness(path)
    assert str(path) in str(caught.value)
    with pytest.raises(SlownessError, match="cannot be read"):
        read_slowness(tmp_path / "none.json")


def figures(**changes: float) -> Figures:
    plain = dict.fromkeys((field.name for field in dataclasses.fields(Figures)), 1.0)
    values = plain | {"tts_s": 40.0, "ttr_s": 40.0, "ett_pct": 20.0, "e2e_s": 100.0} | changes
    return Figures(**{**values, "components": dict.fromkeys(COMPONENTS, 1.0)})  # type: ignore[arg-type]


GAINS: dict[str, dict[str, float]] = {
    "communication": {"communication_s": 0.04},
    "compile_cache": {"compile_restart_s": 0.1},
    "async_checkpoints": {"save_blocking_s": 0.1},
    "standalone_publish": {"publish_s": 0.01},
    "all": {"tts_s": 20.0, "ttr_s": 10.0, "ett_pct": 40.0},
}


class Undrawn(Kept):
    """Pictures take a second each."""

    def draw(self, say: Callable[[str], None]) -> None:
        say("drawn")


def bench(tmp_path: Path, run: Callable[..., Figures], budget_s: float = 1e9) -> tuple[Bench, list[str]]:
    said: list[str] = []
    kept = Undrawn(tmp_path / "out", workload(True), variants(), 3)
    made = Bench(workload(True), kept, tmp_path / "runs", budget_s, said.append, run=run)

    def before(config: ReferenceConfig, *, job: str) -> None:
        Path(config.memory).mkdir(parents=True, exist_ok=True)
        said.append(f"before {job} {config.steps} {config.publish}")

    made.before = before
    return made, said


def written(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "out" / "remedies.json").read_text())


def test_every_variant_is_run_interleaved_and_told_in_a_table(tmp_path: Path) -> None:
    ran: list[ReferenceConfig] = []

    def run(config: ReferenceConfig, *, job: str) -> Figures:
        ran.append(config)
        return figures(**GAINS.get(job.partition("-")[0], {}))

    made, said = bench(tmp_path, run)
    assert made.go(rounds(committed_slowness(), no_slowness(), variants(), 3))
    names = ["baseline", "all", *(variant.name for variant in variants() if variant.name not in ("baseline", "all"))]
    order = [config.out.name.partition("-")[0] for config in ran if config.open_s]
    assert order == [*names, *names[:2], *reversed(names[2:]), *names]
    assert [config.out.name for config in ran if not config.open_s] == [
        *("baseline-bare-0", "all-bare-0", "baseline-bare-1", "all-bare-1", "baseline-bare-2", "all-bare-2")
    ]
    # What a job remembers is there from the start, and for each variant by itself; the baseline has nothing.
    memories = {config.out.name.partition("-")[0]: config.memory for config in ran}
    assert memories["baseline"] == memories["tuned"] == memories["overlap"] == ""
    assert len({memories[name] for name in ("dynamic_shapes", "autotune", "compile_cache", "all")}) == 4
    assert [line.rpartition(" ")[2] for line in said if line.startswith("before all")] == ["False", "False"]
    found = written(tmp_path)
    tables = found["tables"]
    assert set(tables) == {"with injected slowness", "without injected slowness"}
    assert [row["remedy"] for row in tables["with injected slowness"]["rows"]] == [*REMEDIES, "all"]
    assert {row["runs"] for row in tables["with injected slowness"]["rows"]} == {3}
    assert [row["remedy"] for row in tables["without injected slowness"]["rows"]] == ["all"]
    assert (found["left_out"], found["failures"]) == ([], [])
    aims = {aim["what"]: (aim["reached"], aim["met"]) for aim in tables["with injected slowness"]["aims"]}
    assert aims["communication in start-up, times less"] == (25.0, True)
    assert aims["compile on a warm restart, % less than cold"] == (90.0, True)
    assert aims["TTS with everything on, % less"] == (50.0, True)
    assert aims["TTR with everything on, times less"] == (4.0, True)
    assert aims["ETT%, points more with everything on"] == (20.0, True)
    text = (tmp_path / "out" / "remedies.md").read_text()
    assert "| compile_cache | pt2_compilation |" in text
    assert "missed" not in text


def test_a_remedy_that_does_nothing_misses_its_aim(tmp_path: Path) -> None:
    made, _ = bench(tmp_path, lambda config, *, job: figures())
    made.go(rounds(committed_slowness(), no_slowness(), variants(), 1))
    text = (tmp_path / "out" / "remedies.md").read_text()
    assert text.count("| missed |") > 5
    assert "| met |" not in text


def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    def run(config: ReferenceConfig, *, job: str) -> Figures:
        if job.startswith("overlap"):
            raise RunFailed(f"{job} ended with exit code 1")
        return figures()

    made, said = bench(tmp_path, run)
    assert not made.go(rounds(committed_slowness(), no_slowness(), variants(), 1))
    assert written(tmp_path)["failures"] == ["overlap-slow-0 ended with exit code 1"]
    assert any("overlap-slow-0 failed" in line for line in said)
    rows = written(tmp_path)["tables"]["with injected slowness"]["rows"]
    assert "overlap" not in [row["remedy"] for row in rows]
    assert len(rows) == len(REMEDIES)


@pytest.mark.parametrize(("minutes", "made_runs"), [(0.0, 13), (4.0, 24), (1e3, 39)])
def test_no_run_is_begun_that_would_not_end_in_time(tmp_path: Path, minutes: float, made_runs: int) -> None:
    """But those of the first round, which must be. What was left out is told."""
    now = [0.0]

    def run(config: ReferenceConfig, *, job: str) -> Figures:
        now[0] += 10
        return figures()

    made, said = bench(tmp_path, run, budget_s=minutes * 60)
    made.clock = lambda: now[0]
    assert made.go(rounds(committed_slowness(), no_slowness(), variants(), 3))
    assert now[0] == 10 * made_runs
    found = written(tmp_path)
    assert len(found["left_out"]) == 39 - made_runs
    assert {row["runs"] for row in found["tables"]["without injected slowness"]["rows"]} == {1 if made_runs < 39 else 3}
    rows = found["tables"]["with injected slowness"]["rows"]
    assert sum(row["runs"] for row in rows) + 2 * (13 <= made_runs < 24) <= made_runs
    assert sum("no time for it" in line for line in said) == 39 - made_runs
    assert ("There was no time for" in (tmp_path / "out" / "remedies.md").read_text()) == (made_runs < 39)


def test_results_are_there_after_each_run_and_a_bench_goes_on_from_them(tmp_path: Path) -> None:
    planned = rounds(committed_slowness(), no_slowness(), variants(), 2)
    ran: list[str] = []

    def run(config: ReferenceConfig, *, job: str) -> Figures:
        if len(ran) == 15:
            raise KeyboardInterrupt
        ran.append(job)
        return figures(tts_s=float(len(ran)))

    made, _ = bench(tmp_path, run)
    with pytest.raises(KeyboardInterrupt):
        made.go(planned)

    def later(config: ReferenceConfig, *, job: str) -> Figures:
        ran.append(job)
        return figures()

    again, _ = bench(tmp_path, later)
    assert again.kept.read((committed_slowness(), no_slowness())) == 15
    assert again.go(planned)
    assert len(ran) == len(set(ran)) == 2 * (len(variants()) + 2)
    runs = written(tmp_path)["tables"]["with injected slowness"]["runs"]
    assert runs["baseline"][0]["tts_s"] == 1.0
    assert {len(found) for found in runs.values()} == {2}


def test_results_of_something_else_are_not_gone_on_with(tmp_path: Path) -> None:
    made, _ = bench(tmp_path, lambda config, *, job: figures())
    both = (committed_slowness(), no_slowness())
    assert made.kept.read(both) == 0
    made.go(rounds(*both, variants(), 1))
    with pytest.raises(NotKept, match="another workload"):
        Kept(tmp_path / "out", workload(False), variants(), 3).read(both)
    path = tmp_path / "slow.json"
    path.write_text('{"open_s": {"value": 1, "unit": "s", "why": "shorter"}}')
    with pytest.raises(NotKept, match="another slowness"):
        Kept(tmp_path / "out", workload(True), variants(), 3).read((read_slowness(path), no_slowness()))
    for text in ("{", "[]", '{"workload": {}}'):
        (tmp_path / "out" / "remedies.json").write_text(text)
        with pytest.raises(NotKept, match="remedies.json"):
            Kept(tmp_path / "out", workload(True), variants(), 3).read(both)
