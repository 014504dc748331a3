"""The Kubernetes watcher against an API server over real HTTP."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ettwatch_app.commands.watch import watch
from ettwatch_schemas import Event, decode_event
from ettwatch_sources import Told, line_of
from ettwatch_sources.kubernetes.api import Api, ApiError, Unreachable
from ettwatch_sources.kubernetes.config import Access, ConfigError, from_kubeconfig, in_cluster
from ettwatch_sources.kubernetes.folder import Folder
from ettwatch_sources.kubernetes.resources import WATCHED
from ettwatch_sources.kubernetes.watcher import Watcher
from support import kubernetes_objects as k
from support.imported import folded
from support.kubernetes_api import FakeApi, served
from support.kubernetes_objects import condition


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    fake.objects = {path: {} for path in k.ALL}
    with served(fake):
        yield fake


class Running:
    """A watcher in a thread, and what it told."""

    def __init__(self, api: FakeApi, watch_s: int = 2, state: dict[str, Any] | None = None) -> None:
        self.folder = Folder("c1", api.url, WATCHED)
        self.folder.load(state or {})
        self.said: list[str] = []
        self.watcher = Watcher(Api(Access(api.url)), WATCHED, None, self.folder, self.said.append, watch_s)
        self.events: list[Event] = []
        self.thread = threading.Thread(target=self.watcher.run, args=(self.clock, self.take), daemon=True)
        self.thread.start()

    def clock(self) -> int:
        return time.time_ns() // 1000

    def take(self, told: list[Told], save: bool) -> None:
        self.events += [decode_event(line_of(one)) for one in told]

    def until(self, done: Callable[[], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, f"not in time: {[event.kind for event in self.events]} {self.said}"
            time.sleep(0.02)

    def kinds(self, job: str) -> list[str]:
        return [event.kind for event in self.events if event.job.startswith(f"ads/{job}/")]

    def stop(self) -> None:
        self.watcher.stop()
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture
def running(api: FakeApi) -> Iterator[Running]:
    for number in range(5):  # three pages of two
        api.put(k.JOBSETS, k.jobset(f"old-{number}", "08:00:00"))
    found = Running(api)
    yield found
    found.stop()


def test_lists_in_pages_then_watches(api: FakeApi, running: Running) -> None:
    running.until(lambda: len(running.events) == 5)
    api.put(k.JOBSETS, k.jobset("llm", "09:00:00"))
    admitted = condition("Admitted", "09:10:00", "Admitted")
    api.put(k.WORKLOADS, k.workload("w", "llm", "JobSet", "09:00:00", admitted))
    running.until(lambda: running.kinds("llm") == ["job_submitted", "attempt_started"])
    api.delete(k.JOBSETS, "ads/llm")
    running.until(lambda: running.kinds("llm")[-1] == "job_ended")
    lists = [query for path, query, _ in api.requests if path == k.JOBSETS and "watch" not in query]
    assert [query.get("continue") for query in lists] == [None, "2", "4"]

    def watches() -> list[dict[str, str]]:
        return [query for path, query, _ in list(api.requests) if path == k.PODS and "watch" in query]

    wanted = {"jobset.sigs.k8s.io/jobset-name", "volcano.sh/job-name"}
    running.until(lambda: {query["labelSelector"] for query in watches()} >= wanted)
    assert all(query["allowWatchBookmarks"] == "true" for query in watches())


def test_410_lists_anew_and_finds_what_is_gone(api: FakeApi, running: Running) -> None:
    running.until(lambda: running.watcher.synced >= {"JobSet"})
    with api.lock:  # gone while nobody could hear of it
        del api.objects[k.JOBSETS]["ads/old-0"]
    api.forget()
    running.until(lambda: running.kinds("old-0") == ["job_submitted", "job_ended"])
    api.put(k.JOBSETS, k.jobset("new", "09:00:00"))
    running.until(lambda: running.kinds("new") == ["job_submitted"])
    # What was told before is not told again.
    assert running.kinds("old-1") == ["job_submitted"]


def test_connections_that_break_lose_and_double_nothing(api: FakeApi, running: Running) -> None:
    running.until(lambda: running.watcher.synced >= {"JobSet", "PyTorchJob"})
    api.break_after = 3
    for number in range(4):
        api.put(k.PYTORCHJOBS, k.pytorchjob(f"p{number}", "09:00:00", condition("Running", "09:05:00")))
    running.until(lambda: all(len(running.kinds(f"p{n}")) == 2 for n in range(4)))
    ids = [event.id for event in running.events]
    assert len(ids) == len(set(ids))
    # Whose watch broke may be of another kind, and say so later.
    running.until(lambda: any("broke" in text or "Unreachable" in text or "Error" in text for text in running.said))


def test_a_watch_goes_on_from_its_bookmark(api: FakeApi, running: Running) -> None:
    """Without bookmarks a quiet kind would watch from a version that the server forgets."""
    running.until(lambda: len(running.watcher.synced) > 5)
    for number in range(3):
        api.put(k.JOBS, k.batch_job(f"b{number}", "09:00:00"))
    running.until(lambda: running.kinds("b2") == ["job_submitted"])

    def newest() -> int:  # watches last 2 s here
        asked = [int(q["resourceVersion"]) for p, q, _ in list(api.requests) if p == k.JOBSETS and "watch" in q]
        return asked[-1] if asked else 0

    running.until(lambda: newest() >= 108)
    assert len([1 for p, q, _ in api.requests if p == k.JOBSETS and "watch" not in q]) == 3


def test_what_the_cluster_has_not_or_does_not_allow_is_said(api: FakeApi) -> None:
    api.absent = {k.VOLCANO}
    api.forbidden = {k.PYTORCHJOBS}
    api.put(k.JOBSETS, k.jobset("llm", "09:00:00"))
    found = Running(api)
    found.until(lambda: found.kinds("llm") == ["job_submitted"] and len(found.said) >= 2)
    found.stop()
    text = "\n".join(found.said)
    assert "the cluster has no VolcanoJob" in text
    assert "not allowed to list and watch /apis/kubeflow.org/v1/pytorchjobs" in text
    assert "grant get, list and watch" in text


def test_a_page_that_expired_begins_the_list_anew(api: FakeApi) -> None:
    for number in range(5):
        api.put(k.JOBSETS, k.jobset(f"j{number}", "09:00:00"))
    api.stale_pages = 1
    found = Running(api)
    found.until(lambda: len(found.events) == 5)
    found.stop()


def kubeconfig(folder: Path, url: str, user: dict[str, Any]) -> str:
    told = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(told))
    return str(path)


def test_the_command_tells_what_there_is_and_goes_on_from_its_cursor(api: FakeApi, tmp_path: Path) -> None:
    api.token = "s3cret"
    api.put(k.JOBSETS, k.jobset("llm", "09:00:00"))
    admitted = condition("Admitted", "09:10:00", "Admitted")
    api.put(k.WORKLOADS, k.workload("w", "llm", "JobSet", "09:00:00", admitted))
    config = kubeconfig(tmp_path, api.url, {"token": "s3cret"})
    words = ["kubernetes", "--kubeconfig", config, "--out", str(tmp_path / "spool"), "--cluster", "c9", "--once"]

    def told() -> list[Event]:
        files = sorted((tmp_path / "spool").glob("*.jsonl"))
        return [decode_event(line) for file in files for line in file.read_bytes().splitlines()]

    first = CliRunner().invoke(watch, words)
    assert first.exit_code == 0, first.output
    assert [event.kind for event in told()] == ["job_submitted", "attempt_started"]
    assert "s3cret" not in first.output + "".join(p.read_text() for p in (tmp_path / "spool").rglob("*.json*"))
    again = CliRunner().invoke(watch, words)
    assert again.exit_code == 0
    assert len(told()) == 2
    evicted = condition("Evicted", "10:00:00", "Preempted")
    api.put(k.WORKLOADS, k.workload("w", "llm", "JobSet", "09:00:00", {**admitted, "status": "False"}, evicted))
    assert CliRunner().invoke(watch, words).exit_code == 0
    (job,) = folded(told()).values()
    assert (job.summary.nof_preempted, job.summary.cluster, job.summary.status) == (1, "c9", "recovering")
    (tmp_path / "spool/.cursors/kubernetes.json").write_text("{}")
    refused = CliRunner().invoke(watch, words)
    assert refused.exit_code == 2
    assert "is no cursor file" in refused.output


def test_wrong_tokens_and_places(api: FakeApi) -> None:
    api.token = "right"
    client = Api(Access(api.url, token="wrong-and-secret"))
    with pytest.raises(ApiError, match="401") as caught:
        client.get(k.JOBSETS, {"limit": "1"})
    assert "secret" not in str(caught.value) + repr(Access(api.url, token="wrong-and-secret"))
    with pytest.raises(Unreachable, match="^nothing listens at http://127.0.0.1:9; is the API server up, .*kubeconfig"):
        Api(Access("http://127.0.0.1:9")).get("/x", {})


def test_kubeconfigs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("abc\n")
    access = from_kubeconfig(kubeconfig(tmp_path, "https://k:6443", {"tokenFile": "token"}))
    assert access.headers() == {"Authorization": "Bearer abc"}
    (tmp_path / "token").write_text("def\n")
    assert access.headers() == {"Authorization": "Bearer def"}
    with pytest.raises(ConfigError, match="gets its token from a program"):
        from_kubeconfig(kubeconfig(tmp_path, "https://k:6443", {"exec": {"command": "aws"}}))
    with pytest.raises(ConfigError, match="no context 'other'"):
        from_kubeconfig(str(tmp_path / "config.yaml"), "other")
    with pytest.raises(ConfigError, match="cannot read"):
        from_kubeconfig(str(tmp_path / "none"))
    (tmp_path / "odd").write_text("- 1\n")
    with pytest.raises(ConfigError, match="no kubeconfig"):
        from_kubeconfig(str(tmp_path / "odd"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="no pod"):
        in_cluster(str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    (tmp_path / "namespace").write_text("ml")
    inside = in_cluster(str(tmp_path))
    assert (inside.server, inside.namespace, inside.headers()) == (
        "https://10.0.0.1:443",
        "ml",
        {"Authorization": "Bearer def"},
    )


def test_the_cursor_is_plain_json(api: FakeApi) -> None:
    api.put(k.JOBSETS, k.jobset("llm", "09:00:00"))
    found = Running(api)
    found.until(lambda: len(found.events) == 1)
    found.stop()
    state = json.loads(json.dumps(found.watcher.dump()))
    folder = Folder("c1", "x", WATCHED)
    folder.load(state)
    assert folder.dump() == state


def test_a_job_that_went_while_nobody_watched(api: FakeApi, tmp_path: Path) -> None:
    api.put(k.PYTORCHJOBS, k.pytorchjob("ctr", "09:00:00", condition("Running", "09:05:00")))
    first = Running(api)
    first.until(lambda: len(first.events) == 2)
    first.stop()
    api.delete(k.PYTORCHJOBS, "ads/ctr")
    second = Running(api, state=first.watcher.dump())
    second.until(lambda: second.kinds("ctr") == ["attempt_ended", "job_ended"])
    second.stop()
    assert second.watcher.dump() == {"jobs": {}, "kinds": {}}


def test_another_version_of_an_api(api: FakeApi) -> None:
    newer = k.WORKLOADS.replace("v1beta1", "v1beta2")
    api.objects[newer] = {}
    del api.objects[k.WORKLOADS]
    admitted = condition("Admitted", "09:10:00", "Admitted")
    api.put(newer, k.workload("w", "ray-1", "RayCluster", "09:00:00", admitted))
    found = Running(api)
    found.until(lambda: found.kinds("ray-1") == ["job_submitted", "attempt_started"])
    found.stop()


def test_trainjobs_and_rayjobs_over_http(api: FakeApi) -> None:
    api.put(k.TRAINJOBS, k.trainjob("ft", "09:00:00"))
    meta = {"ownerReferences": [{"kind": "TrainJob", "name": "ft", "uid": "uid-ft"}]}
    api.put(k.JOBSETS, k.jobset("ft", "09:00:01", uid="uid-set", meta=meta))
    api.put(k.PODS, k.pod("ft-node-0", "jobset.sigs.k8s.io/jobset-name", "ft", "09:05:00"))
    api.put(k.RAYJOBS, k.rayjob("r", "09:00:00", "Running", "09:06:00", rayClusterName="r-abc"))
    api.put(k.PODS, k.pod("r-abc-head", "ray.io/cluster", "r-abc", "09:04:00"))
    found = Running(api)
    wanted = ["job_submitted", "attempt_started"]
    found.until(lambda: found.kinds("ft") == wanted and found.kinds("r") == wanted)
    api.put(k.TRAINJOBS, k.trainjob("ft", "09:00:00", condition("Complete", "10:00:00", "AllJobsCompleted")))
    api.delete(k.RAYJOBS, "ads/r")
    ended = [*wanted, "attempt_ended", "job_ended"]
    found.until(lambda: found.kinds("ft") == ended and found.kinds("r") == ended)
    found.stop()
    shots = [shot.summary for shot in folded(found.events).values()]
    assert {job.job: (job.status, job.gpus) for job in shots} == {
        "ads/ft/uid-ft": ("succeeded", 64),
        "ads/r/uid-r": ("cancelled", 48),
    }
    # Nothing that was told is told about a job set that runs for another job.
    assert len(shots) == 2


def test_a_job_of_a_kind_that_may_not_be_seen(api: FakeApi) -> None:
    api.absent = {k.RAYJOBS}
    api.forbidden = {k.TRAINJOBS}
    admitted = condition("Admitted", "09:10:00", "Admitted")
    api.put(k.WORKLOADS, k.workload("w", "ray-1", "RayJob", "09:00:00", admitted))
    meta = {"ownerReferences": [{"kind": "TrainJob", "name": "ft", "uid": "uid-ft"}]}
    api.put(k.JOBSETS, k.jobset("ft", "09:00:01", uid="uid-set", meta=meta))
    api.put(k.PODS, k.pod("ft-node-0", "jobset.sigs.k8s.io/jobset-name", "ft", "09:05:00"))
    found = Running(api)
    wanted = ["job_submitted", "attempt_started"]
    found.until(lambda: found.kinds("ray-1") == wanted and found.kinds("ft") == wanted)
    found.stop()
    assert {event.job for event in found.events} == {"ads/ray-1/uid-ray-", "ads/ft/uid-ft"}


def test_once_ends_where_nothing_can_be_reached_or_is_allowed(api: FakeApi, tmp_path: Path) -> None:
    api.forbidden = {k.PYTORCHJOBS, k.PODS}
    config = kubeconfig(tmp_path, api.url, {})
    words = ["kubernetes", "--kubeconfig", config, "--out", str(tmp_path / "spool"), "--once"]
    assert CliRunner().invoke(watch, words).exit_code == 0
    gone = kubeconfig(tmp_path, "http://127.0.0.1:9", {})
    done = CliRunner().invoke(watch, ["kubernetes", "--kubeconfig", gone, "--out", str(tmp_path / "x"), "--once"])
    assert done.exit_code == 2
    assert "127.0.0.1:9" in done.output
