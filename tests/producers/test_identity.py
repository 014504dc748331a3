import os
import re
from typing import Any

import pytest

from ettwatch.identity import BadIdentity, Given, Identity, resolve
from ettwatch_schemas import JobSubmitted

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "run-7",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "TORCHELASTIC_MAX_RESTARTS": "3",
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "16",
    "LOCAL_WORLD_SIZE": "4",
}
SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_CLUSTER_NAME": "alps",
    "SLURM_RESTART_COUNT": "1",
    "SLURM_PROCID": "3",
    "SLURM_NNODES": "2",
    "SLURM_GPUS_ON_NODE": "4",
    "SLURM_STEP_NUM_TASKS": "8",
}
LAUNCHED = {"ETTWATCH_LAUNCHER": "1", "ETTWATCH_JOB": "launched", "ETTWATCH_ATTEMPT": "4", "ETTWATCH_RUN_DIR": "/run/x"}


@pytest.mark.parametrize(
    ("given", "env", "expected"),
    [
        pytest.param(
            {}, TORCHRUN, {"job": "run-7", "attempt": 2, "rank": 5, "world_size": 16, "gpus": 16}, id="torchrun"
        ),
        pytest.param({}, {**TORCHRUN, "ETTWATCH_JOB": "mine"}, {"job": "mine", "attempt": 2}, id="job before torchrun"),
        pytest.param({"job": "own"}, {**TORCHRUN, "ETTWATCH_JOB": "mine"}, {"job": "own"}, id="given before all"),
        pytest.param({}, {**TORCHRUN, "ETTWATCH_ATTEMPT": "10"}, {"attempt": 12}, id="attempt and elastic restarts"),
        pytest.param(
            {"attempt": 1, "rank": 0, "gpus": 0}, {**TORCHRUN}, {"attempt": 1, "rank": 0, "gpus": 0}, id="given"
        ),
        pytest.param(
            {}, {**TORCHRUN, "ETTWATCH_RANK": "9", "ETTWATCH_GPUS": "8"}, {"rank": 9, "gpus": 8}, id="variables"
        ),
        pytest.param(
            {},
            SLURM,
            {"job": "alps-4711", "attempt": 1, "rank": 3, "world_size": 8, "gpus": 8, "cluster": "alps", "named": True},
            id="slurm",
        ),
        pytest.param(
            {}, {"SLURM_JOB_ID": "1", "SLURM_GPUS": "a100:6"}, {"job": "slurm-1", "gpus": 6}, id="slurm types"
        ),
        pytest.param(
            {},
            {**SLURM, "SLURM_ARRAY_JOB_ID": "4700", "SLURM_ARRAY_TASK_ID": "11"},
            {"job": "alps-4700_11"},
            id="array",
        ),
        pytest.param(
            {}, {**SLURM, **TORCHRUN}, {"job": "run-7", "attempt": 1 * 4 + 2, "rank": 5}, id="torchrun in slurm"
        ),
        pytest.param(
            {"cluster": "c", "team": "t", "model": "m", "labels": {"a": "b"}},
            {**SLURM, "ETTWATCH_TEAM": "no", "ETTWATCH_LABELS": "no=no"},
            {"cluster": "c", "team": "t", "model": "m", "labels": {"a": "b"}},
            id="about the job, given",
        ),
        pytest.param(
            {},
            {"ETTWATCH_TEAM": "t", "ETTWATCH_MODEL": "m", "ETTWATCH_CLUSTER": "c", "ETTWATCH_LABELS": " a=b , c=d=e,,"},
            {"team": "t", "model": "m", "cluster": "c", "labels": {"a": "b", "c": "d=e"}},
            id="about the job, variables",
        ),
        pytest.param({}, {}, {"attempt": 0, "rank": 0, "gpus": None, "world_size": None, "named": False}, id="nothing"),
        pytest.param(
            {}, {**TORCHRUN, "ETTWATCH_ATTEMPT": " ", "RANK": ""}, {"attempt": 2, "rank": 0}, id="empty is unset"
        ),
        pytest.param(
            {}, LAUNCHED, {"job": "launched", "attempt": 4, "launched": True, "run_dir": "/run/x"}, id="launched"
        ),
        pytest.param({}, {**LAUNCHED, **TORCHRUN}, {"job": "launched", "attempt": 6, "elastic_restart": 2}, id="both"),
        pytest.param({}, {"ETTWATCH_RUN_DIR": "/run/x"}, {"launched": False, "run_dir": None}, id="no launcher"),
    ],
)
def test_who_speaks(given: dict[str, Any], env: dict[str, str], expected: dict[str, object]) -> None:
    found = resolve(Given(**given), env)._asdict()
    assert {name: found[name] for name in expected} == expected
    assert found["host"] == os.uname().nodename


@pytest.mark.parametrize(("restarts", "retries"), [("0", True), ("2", True), ("3", False)])
def test_whether_torchelastic_will_try_again(restarts: str, retries: bool) -> None:
    assert resolve(Given(), {**TORCHRUN, "TORCHELASTIC_RESTART_COUNT": restarts}).elastic_retries == retries


def test_requeues_and_restarts_never_share_a_number() -> None:
    numbers = [
        resolve(
            Given(),
            {**TORCHRUN, "SLURM_RESTART_COUNT": str(requeue), "TORCHELASTIC_RESTART_COUNT": str(restart)},
        ).attempt
        for requeue in range(3)
        for restart in range(4)
    ]
    assert numbers == list(range(12))


def test_a_job_that_nobody_named_gets_a_name() -> None:
    alone = resolve(Given(), {})
    assert re.fullmatch(rf"{re.escape(os.uname().nodename)}-{os.getpid()}-\d{{8}}T\d{{6}}", alone.job)


def test_ranks_of_one_agent_agree_on_a_name_and_those_of_several_machines_are_warned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "4"}
    names = {resolve(Given(), {**env, "RANK": rank}).job for rank in "0123"}
    assert len(names) == 1
    assert str(os.getppid()) in names.pop()
    assert not caplog.records
    resolve(Given(), {**env, "WORLD_SIZE": "8"})
    assert "ETTWATCH_JOB" in caplog.text


@pytest.mark.parametrize(
    ("given", "env", "wrong"),
    [
        ({}, {"ETTWATCH_ATTEMPT": "-1"}, "ETTWATCH_ATTEMPT='-1'"),
        ({}, {"ETTWATCH_ATTEMPT": "first"}, "ETTWATCH_ATTEMPT='first'"),
        ({}, {"ETTWATCH_ATTEMPT": str(2**31)}, "ETTWATCH_ATTEMPT"),
        ({}, {"RANK": "x"}, "RANK='x'"),
        ({}, {"TORCHELASTIC_RESTART_COUNT": "many"}, "TORCHELASTIC_RESTART_COUNT"),
        ({}, {"ETTWATCH_GPUS": "1.5"}, "ETTWATCH_GPUS='1.5'"),
        ({"attempt": -1}, {}, "attempt=-1"),
        ({"attempt": True}, {}, "attempt=True"),
        ({"rank": 1.5}, {}, "rank=1.5"),
        ({"gpus": "many"}, {}, "gpus='many'"),
        ({"job": ""}, {}, "job=''"),
        ({"job": 7}, {}, "job=7"),
    ],
)
def test_what_would_file_events_wrongly_is_refused(given: dict[str, Any], env: dict[str, str], wrong: str) -> None:
    with pytest.raises(BadIdentity, match=re.escape(wrong)):
        resolve(Given(**given), env)


def test_the_launcher_is_right(caplog: pytest.LogCaptureFixture) -> None:
    found = resolve(Given(job="other", attempt=9), LAUNCHED)
    assert (found.job, found.attempt) == ("launched", 4)
    assert "'other'" in caplog.text
    caplog.clear()
    resolve(Given(job="launched", attempt=4), LAUNCHED)
    assert not caplog.records


def test_labels_that_are_none_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert resolve(Given(), {"ETTWATCH_LABELS": "a=1,b,=2"}).labels == {"a": "1"}
    assert "'b'" in caplog.text


@pytest.mark.parametrize("job", ["two words", "emoji 😀", "x" * 5000, "half \udce4 pair", "\t"])
def test_any_job_name_can_be_sent(job: str) -> None:
    found: Identity = resolve(Given(), {"ETTWATCH_JOB": job})
    JobSubmitted(id="1", job=found.job, ts=1_790_000_000_000_000)
    assert len(found.job) == min(len(job), 1024) or found.job.startswith("half ? pair-")
    assert resolve(Given(), {"ETTWATCH_JOB": found.job}).job == found.job


@pytest.mark.parametrize(
    ("one", "other"),
    [("x" * 1024 + "a", "x" * 1024 + "b"), ("x" * 1024, "x" * 1025), ("a\udce4", "a\udcf6"), ("a\udce4", "a?")],
)
def test_two_jobs_stay_two(one: str, other: str) -> None:
    assert resolve(Given(), {"ETTWATCH_JOB": one}).job != resolve(Given(), {"ETTWATCH_JOB": other}).job
