"""The Compose file: read by Compose's own loader, and what it must be besides."""

import importlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
OURS = [name for name, service in SERVICES.items() if service["image"].startswith("ettwatch:")]
ONCE = {"topics", "migrate"}
each_service = pytest.mark.parametrize("name", SERVICES)


def test_compose_reads_it(compose_loader: Any) -> None:
    done = compose_loader("-format", "json", "compose.yaml", cwd=DEPLOY)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["services"]) == set(SERVICES)


def test_compose_would_see_a_fault(compose_loader: Any, tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {a: {image: b, depnds_on: [c]}}", encoding="utf-8")
    done = compose_loader("compose.yaml", cwd=tmp_path)
    assert done.returncode != 0
    assert "depnds_on" in done.stderr


def test_everything_that_is_asked_for_is_there() -> None:
    assert {"kafka", "clickhouse", "sink", "prometheus", "alertmanager", "grafana", *ONCE} <= set(SERVICES)
    assert len([name for name in SERVICES if name.startswith("worker")]) == 2


@each_service
def test_an_image_is_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+[\w.-]*", image), f"{image} is not pinned by its full version"


@each_service
def test_what_is_published_listens_on_loopback(name: str) -> None:
    for port in SERVICES[name].get("ports", ()):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), f"{name} publishes {port}"


@each_service
def test_who_waits_for_a_healthy_service_waits_for_one_that_can_tell(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        if how["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other], f"{other} has no health check"
        if how["condition"] == "service_completed_successfully":
            assert SERVICES[other]["restart"] == "no"
            assert other in ONCE


@each_service
def test_a_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service
    assert "network_mode" not in service
    assert service["networks"]
    assert service["logging"]["options"]["max-size"]
    if name not in ONCE:
        limits = service["deploy"]["resources"]["limits"]
        assert limits["memory"]
        assert limits["cpus"]
        assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", OURS)
def test_our_own_parts_need_no_root_and_write_nothing_but_their_state(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["user"] == "10001:10001"
    assert "cap_add" not in service
    targets = [volume.split(":")[1] for volume in service.get("volumes", ()) if not volume.endswith(":ro")]
    assert targets == (["/var/lib/ettwatch"] if name.startswith(("worker", "alerts")) else [])
    assert service["networks"] == (["pipeline", "watch"] if name == "alerts" else ["pipeline"])


@each_service
def test_no_secret_is_in_the_file(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if re.search(r"PASSWORD|SECRET|TOKEN|KEY", variable):
            assert variable.endswith("FILE"), f"{name}: {variable} must be read from a file"
            assert value.removeprefix("/run/secrets/") in SERVICES[name]["secrets"]
        assert not re.search(r"//[^/@]*:[^/@]*@", str(value)), f"{name}: {variable} holds a password"


def test_secrets_are_files_that_the_script_makes(compose: dict[str, Any]) -> None:
    script = (DEPLOY / "secrets.sh").read_text(encoding="utf-8")
    for name, secret in compose["secrets"].items():
        assert secret == {"file": f"./secrets/{name}"}
        assert re.search(rf"\b{name}\b", script), f"deploy/secrets.sh does not make {name}"
    used = {name for service in SERVICES.values() for name in service.get("secrets", ())}
    assert used == set(compose["secrets"])


def test_the_folder_of_the_secrets_is_never_committed() -> None:
    assert "secrets/" in (DEPLOY / ".gitignore").read_text(encoding="utf-8").split()


@each_service
def test_a_file_that_is_mounted_exists_and_is_read_only(name: str, compose: dict[str, Any]) -> None:
    for volume in SERVICES[name].get("volumes", ()):
        source, _, rest = volume.partition(":")
        if source.startswith("."):
            assert (DEPLOY / source).exists(), source
            assert rest.endswith(":ro")
        else:
            assert source in compose["volumes"]


@pytest.mark.parametrize("name", OURS)
def test_a_command_is_one_that_ettwatch_has(name: str) -> None:
    takes(SERVICES[name]["command"])


def takes(args: list[str]) -> None:
    """Let click parse a command line without running it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found, rest = args[0], list(args[1:])
    module, _, attribute = project["entry-points"]["ettwatch.commands"][found].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    while isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    command.make_context(found, rest)


def test_prometheus_reads_the_services_on_the_ports_that_they_serve() -> None:
    told = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    targets = {target for job in told["scrape_configs"] for each in job["static_configs"] for target in each["targets"]}
    served = {
        f"{name}:{SERVICES[name]['environment']['ETTWATCH_WEB'].rpartition(':')[2]}"
        for name in OURS
        if name not in ONCE
    }
    assert served == targets - {"localhost:9090"}
    assert {job["job_name"] for job in told["scrape_configs"]} >= {
        "ettwatch-worker",
        "ettwatch-sink",
        "ettwatch-windows",
        "ettwatch-alerts",
    }
    for name in ("kafka", "prometheus", *[name for name in OURS if name not in ONCE]):
        assert "pipeline" in SERVICES[name]["networks"]


def test_the_rules_of_the_alerts_are_right_and_tell_the_alertmanager_that_is_there() -> None:
    from ettwatch_monitor.alerts.watch import load_rules

    service = SERVICES["alerts"]
    mounts = dict(volume.removesuffix(":ro").split(":") for volume in service["volumes"])
    (source,) = [
        source for source, target in mounts.items() if target == service["environment"]["ETTWATCH_ALERT_RULES"]
    ]
    assert service["environment"]["ETTWATCH_ALERT_STATE"] in mounts.values()
    (channel,) = load_rules(DEPLOY / source).delivery.channels
    assert channel.url is not None
    assert channel.url.read() == "http://alertmanager:9093"
    assert set(service["networks"]) & set(SERVICES["alertmanager"]["networks"])


def test_workers_have_names_of_their_own() -> None:
    names = [SERVICES[name]["environment"]["ETTWATCH_INSTANCE"] for name in OURS if name.startswith("worker")]
    assert len(set(names)) == len(names) == 2


def test_kafka_lets_no_topic_be_made_by_itself_and_takes_the_longest_message() -> None:
    from ettwatch_faust import TopicSettings, plan

    environment = SERVICES["kafka"]["environment"]
    assert environment["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert int(environment["KAFKA_MESSAGE_MAX_BYTES"]) >= max(spec.max_message_bytes for spec in plan(TopicSettings()))
