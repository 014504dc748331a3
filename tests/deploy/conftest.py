"""The tools that check what deploy/ holds, each the one that people use.

They are looked for on PATH first. Else promtool and amtool are unpacked from Debian's packages, and helm and the loader
of Compose files are built by Go, once: into ~/.cache/ettwatch/bin (ETTWATCH_TEST_CACHE moves it).
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
DEPLOY: Final = ROOT / "deploy"
CHART: Final = DEPLOY / "helm" / "ettwatch"
VALUES: Final = Path(__file__).parent / "values"
KUBE: Final = "1.31"
BUILT: Final[Mapping[str, str]] = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.22.0",
    "compose": "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
}
PACKED: Final[Mapping[str, str]] = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}

BUILD_S: Final = 1_800
"""The first test that needs a tool may wait until it is built."""

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
Render = Callable[..., list[dict[str, Any]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(BUILD_S))


def cache() -> Path:
    return Path(os.environ.get("ETTWATCH_TEST_CACHE") or Path.home() / ".cache" / "ettwatch") / "bin"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time: the others find what it made."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def path_of(name: str) -> Path:
    """Where a tool is; it is fetched or built if it must be."""
    there = shutil.which(name) if name != "compose" else None
    if there:
        return Path(there)
    folder = cache()
    place = folder / (name + "-" + BUILT[name].rpartition("@")[2] if name in BUILT else name)
    # A build takes minutes; who wants a package out of the same cache, here or elsewhere, need not wait for it.
    with alone(folder / ".builds" if name in BUILT else folder):
        if not place.exists():
            print(f"\n{name} is not on PATH: putting it into {folder}, which may take some minutes", flush=True)
            with tempfile.TemporaryDirectory(dir=folder) as made:
                source = built(name, Path(made)) if name in BUILT else unpacked(name, Path(made))
                source.rename(place)
    return place


def built(name: str, made: Path) -> Path:
    if shutil.which("go") is None:
        pytest.skip(f"needs Go, to build {name}; install Go 1.24 or newer")
    env = {**os.environ, "GOBIN": str(made), "GOFLAGS": "-buildvcs=false"}
    done = subprocess.run(["go", "install", BUILT[name]], env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{name} cannot be built: {done.stderr[-1_000:]}"
    return next(path for path in made.iterdir() if path.is_file())


def unpacked(name: str, made: Path) -> Path:
    """The tool out of its Debian package, which is not installed: nothing is started, and no root is needed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip(f"needs apt-get, or {name} on PATH")
    fetch = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", PACKED[name]]
    done = subprocess.run(fetch, cwd=made, capture_output=True, text=True)
    if done.returncode:
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True, text=True)
        done = subprocess.run(fetch, cwd=made, capture_output=True, text=True)
    assert done.returncode == 0, f"the package {PACKED[name]} cannot be fetched: {done.stderr}"
    package = next(made.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", package, made / "unpacked"], check=True, capture_output=True)
    return made / "unpacked" / "usr" / "bin" / name


def tool(name: str) -> Tool:
    path = path_of(name)

    def run(*args: str | Path, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
        clean = {**os.environ, "HELM_CACHE_HOME": f"{cache()}/.helm", "HELM_CONFIG_HOME": f"{cache()}/.helm"}
        return subprocess.run([path, *args], cwd=cwd, env=clean, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="session")
def promtool() -> Tool:
    return tool("promtool")


@pytest.fixture(scope="session")
def amtool() -> Tool:
    return tool("amtool")


@pytest.fixture(scope="session")
def helm() -> Tool:
    return tool("helm")


@pytest.fixture(scope="session")
def compose_loader() -> Tool:
    return tool("compose")


@pytest.fixture(scope="session")
def render(helm: Tool) -> Render:
    """Renders the chart with a set of values of tests/deploy/values/, and what is set beside it."""

    def manifests(values: str, *more: str) -> list[dict[str, Any]]:
        done = template(helm, values, *more)
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]

    return manifests


def template(helm: Tool, values: str, *more: str) -> "subprocess.CompletedProcess[str]":
    file = VALUES / f"{values}.yaml"
    return helm("template", "rel", CHART, "--namespace", "ett", "--kube-version", KUBE, "-f", file, *more)


@pytest.fixture(scope="session")
def refusal(helm: Tool) -> Callable[..., str]:
    """Renders the chart with values that it must refuse; returns why."""

    def why(values: str, *more: str) -> str:
        done = template(helm, values, *more)
        assert done.returncode != 0, "the chart takes values that it must refuse"
        return done.stderr

    return why


@pytest.fixture(scope="session")
def compose() -> dict[str, Any]:
    """The Compose file, with its anchors resolved."""
    read = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(read, dict)
    return read


@pytest.fixture(scope="session")
def registered() -> dict[str, tuple[str, ...]]:
    """Every metric that the workers and the sink have, as Prometheus sees its samples, with its labels."""
    from ettwatch_clickhouse.metrics import SinkMetrics
    from ettwatch_faust.metrics import Metrics

    return samples_of(Metrics().registry, SinkMetrics().registry)


@pytest.fixture(scope="session")
def watched(registered: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The same, and what the windows and the alerts have."""
    from ettwatch_faust.windows.metrics import WindowsMetrics
    from ettwatch_monitor.alerts.watch.figures import AlertFigures

    return registered | samples_of(WindowsMetrics().registry, AlertFigures().registry)


def samples_of(*registries: Any) -> dict[str, tuple[str, ...]]:
    from prometheus_client import Counter, Histogram, ProcessCollector

    found: dict[str, tuple[str, ...]] = {}
    for registry in registries:
        for metric in {*registry._collector_to_names}:
            if isinstance(metric, ProcessCollector):
                continue  # process_resident_memory_bytes and the like, which Prometheus documents
            name, labels = metric._name, tuple(metric._labelnames)
            if isinstance(metric, Counter):
                found[f"{name}_total"] = labels
            elif isinstance(metric, Histogram):
                found |= {f"{name}_bucket": (*labels, "le"), f"{name}_sum": labels, f"{name}_count": labels}
            else:
                found[name] = labels
    return found
