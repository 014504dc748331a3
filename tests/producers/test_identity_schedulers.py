"""What schedulers tell of a job: its name is its own for good, its number is one for all ranks."""

import json
from pathlib import Path
from typing import Any

import pytest

from ettwatch.identity import BadIdentity, Given, resolve
from ettwatch.schedulers.told import submit_stamp
from support.spooled import events, launch, python

SLURM = {"SLURM_JOB_ID": "4711", "SLURM_CLUSTER_NAME": "alps"}

JOBSET = """\
jobset.sigs.k8s.io/jobset-name="llm"
jobset.sigs.k8s.io/jobset-uid="0a1b2c3d-1111-2222-3333-444455556666"
jobset.sigs.k8s.io/restart-attempt="2"
jobset.sigs.k8s.io/replicatedjob-name="workers"
jobset.sigs.k8s.io/job-global-index="1"
batch.kubernetes.io/job-name="llm-workers-1"
batch.kubernetes.io/controller-uid="99999999-1111-2222-3333-444455556666"
batch.kubernetes.io/job-completion-index="3"
kueue.x-k8s.io/queue-name="research"
"""
JOB = """\
batch.kubernetes.io/job-name="fine-tune"
batch.kubernetes.io/controller-uid="feedbeef-1111-2222-3333-444455556666"
"""
KUBEFLOW = """\
training.kubeflow.org/job-name="ctr"
training.kubeflow.org/replica-type="worker"
training.kubeflow.org/replica-index="0"
kueue.x-k8s.io/queue-name="ads"
quoted="a \\"word\\" and a \\n line"
"""


def pod(tmp_path: Path, labels: str, annotations: str = "", namespace: str | None = "train") -> dict[str, str]:
    (tmp_path / "labels").write_text(labels)
    (tmp_path / "annotations").write_text(annotations)
    if namespace is not None:
        (tmp_path / "namespace").write_text(namespace)
    return {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "ETTWATCH_PODINFO": str(tmp_path)}


@pytest.mark.parametrize(
    ("labels", "env", "expected"),
    [
        pytest.param(
            JOBSET,
            {"JOB_COMPLETION_INDEX": "3", "ETTWATCH_CLUSTER": "eu"},
            {"job": "eu-train-llm-0a1b2c3d", "attempt": 2, "rank": 100_003, "labels": {"queue": "research"}},
            id="JobSet",
        ),
        pytest.param(
            JOBSET,
            {"RANK": "7", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"},
            {"job": "kubernetes-train-llm-0a1b2c3d", "attempt": 2, "rank": 7},
            id="JobSet with torchrun",
        ),
        pytest.param(
            JOBSET,
            {"TORCHELASTIC_RUN_ID": "llm", "TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "3"},
            {"job": "kubernetes-train-llm-0a1b2c3d", "attempt": 2 * 4 + 1},
            id="JobSet, whose name is torchrun's run id",
        ),
        pytest.param(JOB, {}, {"job": "kubernetes-train-fine-tune-feedbeef", "attempt": 0, "rank": 0}, id="Job"),
        pytest.param(
            KUBEFLOW,
            {"RANK": "1", "WORLD_SIZE": "2"},
            {"job": "kubernetes-train-ctr", "attempt": 0, "rank": 1, "labels": {"queue": "ads"}},
            id="Kubeflow",
        ),
        pytest.param(
            KUBEFLOW,
            {"ETTWATCH_SUBMITTED": "2026-01-02T03:04:05Z"},
            {"job": "kubernetes-train-ctr-20260102T030405Z"},
            id="Kubeflow, told when",
        ),
        pytest.param(KUBEFLOW, {"ETTWATCH_JOB": "mine"}, {"job": "mine"}, id="given before all"),
        pytest.param("", {"JOB_COMPLETION_INDEX": "4"}, {"rank": 4, "named": False}, id="no labels"),
    ],
)
def test_kubernetes(tmp_path: Path, labels: str, env: dict[str, str], expected: dict[str, Any]) -> None:
    found = resolve(Given(), pod(tmp_path, labels) | env)._asdict()
    assert {name: found[name] for name in expected} == expected


def test_annotations_and_the_own_labels_of_the_job_count_too(tmp_path: Path) -> None:
    env = pod(tmp_path, JOB, 'kueue.x-k8s.io/workload="job-fine-tune-1"\n') | {"ETTWATCH_LABELS": "queue=own,a=b"}
    assert resolve(Given(), env).labels == {"workload": "job-fine-tune-1", "queue": "own", "a": "b"}


def test_pods_of_a_jobset_have_ranks_of_their_own(tmp_path: Path) -> None:
    ranks = set()
    for job in range(3):
        for index in range(4):
            env = pod(tmp_path, JOBSET.replace('job-global-index="1"', f'job-global-index="{job}"'))
            ranks.add(resolve(Given(), env | {"JOB_COMPLETION_INDEX": str(index)}).rank)
    assert len(ranks) == 12
    assert min(ranks) == 0


def test_broken_pod_files_break_nothing(tmp_path: Path) -> None:
    env = pod(tmp_path, 'job-name=no quotes\n=\nx\nbatch.kubernetes.io/job-name="half\n', namespace=None)
    found = resolve(Given(), env)
    assert not found.named
    with pytest.raises(BadIdentity, match="restart-attempt"):
        resolve(Given(), pod(tmp_path, JOBSET.replace('restart-attempt="2"', 'restart-attempt="two"')))


SUBMISSION = json.dumps({"metadata": {"job_submission_id": "raysubmit_x7"}})


@pytest.mark.parametrize(
    ("env", "job"),
    [
        ({"RAY_JOB_ID": "01000000"}, "ray-01000000"),
        (
            {"RAY_JOB_ID": "01000000", "ETTWATCH_CLUSTER": "c", "ETTWATCH_SUBMITTED": "1767323045"},
            "c-01000000-20260102T030405Z",
        ),
        (
            {"RAY_JOB_ID": "01000000", "RAY_JOB_CONFIG_JSON_ENV_VAR": SUBMISSION},
            "ray-raysubmit_x7",
        ),
        ({"RAY_JOB_ID": "02000000", "RAY_JOB_CONFIG_JSON_ENV_VAR": "{broken"}, "ray-02000000"),
        ({"RAY_JOB_ID": "02000000", "RAY_JOB_CONFIG_JSON_ENV_VAR": "[]"}, "ray-02000000"),
    ],
)
def test_ray(env: dict[str, str], job: str) -> None:
    found = resolve(Given(), env | {"RANK": "3", "WORLD_SIZE": "8"})
    assert (found.job, found.rank, found.world_size) == (job, 3, 8)


def test_a_slurm_id_that_comes_again_is_another_job() -> None:
    old = resolve(Given(), SLURM | {"ETTWATCH_SUBMITTED": "2020-05-01T10:00:00+02:00"})
    new = resolve(Given(), SLURM | {"ETTWATCH_SUBMITTED": "1767323045"})
    again = resolve(Given(), SLURM | {"ETTWATCH_SUBMITTED": "1767323045", "SLURM_RESTART_COUNT": "1"})
    assert old.job == "alps-4711-20200501T080000Z"
    assert new.job == again.job == "alps-4711-20260102T030405Z"
    assert (new.attempt, again.attempt) == (0, 1)


def test_the_same_id_on_two_clusters_is_two_jobs() -> None:
    assert resolve(Given(), SLURM).job != resolve(Given(), SLURM | {"SLURM_CLUSTER_NAME": "jura"}).job


def test_torchrun_with_the_id_of_slurm_as_its_run_id_is_the_job_of_slurm() -> None:
    env = SLURM | {"TORCHELASTIC_RUN_ID": "4711", "RANK": "0", "WORLD_SIZE": "1"}
    assert resolve(Given(), env).job == "alps-4711"
    assert resolve(Given(), env | {"TORCHELASTIC_RUN_ID": "my-run"}).job == "my-run"


def test_the_parts_of_a_heterogeneous_job_are_one() -> None:
    het = SLURM | {"SLURM_HET_JOB_ID": "4711"}
    parts = [het | {"SLURM_JOB_ID": str(4711 + n), "SLURM_HET_JOB_OFFSET": str(n)} for n in (0, 1)]
    assert {resolve(Given(), part).job for part in parts} == {"alps-4711"}


@pytest.mark.parametrize("text", ["yesterday", "-5", "0", "1e9", "99999999999999", "2026-13-01"])
def test_a_submit_time_that_is_none_is_warned_of(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert submit_stamp({"ETTWATCH_SUBMITTED": text}) is None
    assert repr(text) in caplog.text
    assert submit_stamp({}) is None


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD", "PMI"])
def test_mpi(name: str) -> None:
    found = resolve(Given(job="job"), {f"{name}_RANK": "2", f"{name}_SIZE": "4"})
    assert (found.rank, found.world_size) == (2, 4)


def start(spool: Path, **env: str) -> int:
    """The attempt of a process that starts without a launcher."""
    code = "import ettwatch; rec = ettwatch.init(); print(rec.attempt); rec.end(%r)"
    done = python(code % env.pop("outcome", "failed"), spool, {"ETTWATCH_JOB": "job", **env})
    assert done.returncode == 0, done.stderr
    return int(done.stdout or -1)


def test_a_job_that_is_started_again_without_a_launcher_goes_on_counting(spool: Path) -> None:
    assert [start(spool) for _ in range(3)] == [0, 1, 2]
    launched = launch(["true"], spool, "--job", "job")
    assert launched.returncode == 0
    assert start(spool) == 4
    assert sorted({event.attempt for event in events(spool) if event.kind == "attempt_ended"}, key=str) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_what_is_told_counts_before_the_book(spool: Path) -> None:
    assert start(spool, ETTWATCH_ATTEMPT="7") == 7
    assert start(spool) == 0
    assert start(spool, SLURM_RESTART_COUNT="5", SLURM_JOB_ID="1") == 5
    assert start(spool, SLURM_RESTART_COUNT="5", SLURM_JOB_ID="1") == 6  # the second run within one allocation


def test_ranks_of_one_machine_agree_although_their_counters_begin_anew(spool: Path) -> None:
    """Three starts of torchrun by hand: each counts its restarts from 0 again."""
    code = """
        import os, ettwatch
        numbers = []
        for restart in range(2):            # what the agent does
            readers = []
            for rank in range(3):
                read, write = os.pipe()
                if os.fork() == 0:
                    os.environ.update(RANK=str(rank), WORLD_SIZE="3", LOCAL_WORLD_SIZE="3", TORCHELASTIC_RUN_ID="run",
                                      TORCHELASTIC_MAX_RESTARTS="1", TORCHELASTIC_RESTART_COUNT=str(restart))
                    rec = ettwatch.init(job="job")
                    os.write(write, str(rec.attempt).encode())
                    rec.failed("no")
                    os._exit(0)
                os.wait()                   # one rank has failed before the next one begins
                readers.append(os.read(read, 10).decode())
            numbers.append(",".join(readers))
        print(*numbers)
    """
    told = [python(code, spool, {"PYTHONWARNINGS": "ignore"}).stdout.split() for _ in range(3)]
    assert told == [["0,0,0", "1,1,1"], ["2,2,2", "3,3,3"], ["4,4,4", "5,5,5"]]


def test_init_after_end_is_the_next_attempt(spool: Path) -> None:
    code = """
        import ettwatch
        for n in range(3):
            rec = ettwatch.init(job="job")
            assert ettwatch.get().attempt == n
            rec.end("failed")
    """
    done = python(code, spool)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "env",
    [
        {"RANK": "0", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"},
        {"RANK": "0", "WORLD_SIZE": "16"},
        {"SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NNODES": "2"},
        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"},
    ],
    ids=str,
)
def test_the_book_of_one_machine_does_not_number_the_ranks_of_several(spool: Path, env: dict[str, str]) -> None:
    # Another machine's book may know another number, and a number that is too large would cut the attempt short.
    assert [start(spool, **env) for _ in range(2)] == [0, 0]


def test_agents_that_count_each_for_itself_are_not_believed_away_from_rank_0() -> None:
    env = {
        **{"TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "2"},
        **{"RANK": "9", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "GROUP_RANK": "1"},
    }
    with pytest.raises(BadIdentity, match="ettwatch run --max-restarts"):
        resolve(Given(), env)
    assert resolve(Given(), env | {"GROUP_RANK": "0", "RANK": "0"}).attempt == 2
    assert resolve(Given(attempt=5), env).attempt == 5
    assert resolve(Given(), env | {"TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RESTART_COUNT": "0"}).attempt == 0
    assert resolve(Given(), env | {"LOCAL_WORLD_SIZE": "16"}).attempt == 2


def test_a_book_that_cannot_be_kept_costs_the_number_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    found = resolve(Given(job="job"), {}, str(tmp_path / "file" / "spool"))
    assert (found.attempt, found.booked) == (0, False)
    assert "keeping the numbers of attempts" in caplog.text
