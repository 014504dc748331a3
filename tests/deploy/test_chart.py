"""The Helm chart: linted and rendered by helm in several sets of values, and every manifest checked against the schemas
of the Kubernetes API."""

import importlib
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml

from ettwatch_faust import names

kubernetes_validate: Any = importlib.import_module("kubernetes_validate")  # it has no types

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "ettwatch"
SETS = sorted(path.stem for path in (ROOT / "tests" / "deploy" / "values").glob("*.yaml"))
# The oldest that Chart.yaml allows, one between, and the newest whose schemas are at hand.
VERSIONS = ("1.27", "1.31", "1.37")
Render = Callable[..., list[dict[str, Any]]]
each_set = pytest.mark.parametrize("values", SETS)


def string(pattern: str = ".") -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


# What KEDA and the Prometheus Operator say of the fields that the chart uses: the Kubernetes API knows nothing of them.
CUSTOM: dict[str, dict[str, Any]] = {
    "ScaledObject": closed(
        {
            "scaleTargetRef": closed(
                {"apiVersion": {"const": "apps/v1"}, "kind": {"enum": ["StatefulSet", "Deployment"]}, "name": string()}
            ),
            "minReplicaCount": {"type": "integer", "minimum": 0},
            "maxReplicaCount": {"type": "integer", "minimum": 1},
            "triggers": {
                "type": "array",
                "minItems": 1,
                "items": closed(
                    {"type": {"const": "kafka"}, "metadata": {"type": "object", "additionalProperties": string()}},
                    {"authenticationRef": closed({"name": string()})},
                ),
            },
        },
        {
            "pollingInterval": {"type": "integer", "minimum": 1},
            "fallback": closed(
                {"failureThreshold": {"type": "integer"}, "replicas": {"type": "integer"}},
                {
                    "behavior": {
                        "enum": ["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"]
                    }
                },
            ),
            "advanced": closed({"horizontalPodAutoscalerConfig": closed({"behavior": {"type": "object"}})}),
        },
    ),
    "ServiceMonitor": closed(
        {
            "selector": closed({"matchLabels": {"type": "object", "additionalProperties": string()}}),
            "endpoints": {
                "type": "array",
                "minItems": 1,
                "items": closed(
                    {"port": string(), "path": string("^/")},
                    {"interval": string(r"^\d+[smh]$"), "relabelings": {"type": "array", "items": {"type": "object"}}},
                ),
            },
        }
    ),
    "PrometheusRule": closed({"groups": {"type": "array", "minItems": 1}}),
}


@pytest.fixture(scope="module")
def rendered(render: Render) -> dict[str, list[dict[str, Any]]]:
    return {values: render(values) for values in SETS}


def named(manifests: list[dict[str, Any]], kind: str, end: str = "") -> dict[str, Any]:
    (found,) = [each for each in manifests if each["kind"] == kind and each["metadata"]["name"].endswith(end)]
    return found


def pods(manifests: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every pod that would run: name, labels, spec."""
    for each in manifests:
        if each["kind"] in ("StatefulSet", "Deployment", "Job"):
            template = each["spec"]["template"]
            yield each["metadata"]["name"], template["metadata"]["labels"], template["spec"]


@each_set
def test_helm_lint_has_nothing_to_say(helm: Any, values: str) -> None:
    file = ROOT / "tests" / "deploy" / "values" / f"{values}.yaml"
    done = helm("lint", "--strict", "--kube-version", "1.31", CHART, "-f", file)
    assert done.returncode == 0, done.stdout + done.stderr


@each_set
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_would_take_it(rendered: dict[str, list[dict[str, Any]]], values: str, version: str) -> None:
    assert rendered[values]
    for manifest in rendered[values]:
        if manifest["kind"] in CUSTOM:
            jsonschema.validate(manifest["spec"], CUSTOM[manifest["kind"]])
        else:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_a_fault_would_be_seen(rendered: dict[str, list[dict[str, Any]]]) -> None:
    wrong = json.loads(json.dumps(named(rendered["small"], "StatefulSet")))
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError, match="imagePullPolice"):
        kubernetes_validate.validate(wrong, "1.31", strict=True)


@each_set
def test_names_are_unique_and_short_enough(rendered: dict[str, list[dict[str, Any]]], values: str) -> None:
    seen = [(each["kind"], each["metadata"]["name"]) for each in rendered[values]]
    assert len(seen) == len(set(seen))
    assert all(len(name) <= 63 for _, name in seen)


@each_set
def test_every_pod_is_confined(rendered: dict[str, list[dict[str, Any]]], values: str) -> None:
    for name, _, spec in pods(rendered[values]):
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"]["cpu"]
            assert container["resources"]["limits"]["memory"]
            assert not container["image"].endswith(":latest")
            assert re.search(r"(:\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$", container["image"])
            volumes = {volume["name"] for volume in spec["volumes"]} | {"state"}
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_workers_can_stay_behind_while_the_sink_is_upgraded(render: Render) -> None:
    told = ("--set", "image.tag=0.2.0", "--set", "worker.tag=0.1.0")
    images = {name: spec["containers"][0]["image"] for name, _, spec in pods(render("small", *told))}
    assert images == {
        "rel-ettwatch-worker": "ettwatch:0.1.0",
        **{f"rel-ettwatch-{part}": "ettwatch:0.2.0" for part in ("sink", "windows", "topics", "migrate")},
    }


@each_set
def test_no_password_is_in_a_manifest(rendered: dict[str, list[dict[str, Any]]], values: str) -> None:
    for name, _, spec in pods(rendered[values]):
        for container in spec["containers"]:
            assert not [arg for arg in container["args"] if "password" in arg.lower()], name
            for variable in container["env"]:
                if "PASSWORD" in variable["name"]:
                    assert variable["name"].endswith("_PASSWORD_FILE")
                    assert variable["value"].startswith("/etc/ettwatch/")
                assert not re.search(r"//[^/@]*:[^/@]*@", variable.get("value", ""))
        for volume in spec["volumes"]:
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] == 0o440


def test_each_part_reads_the_secrets_that_it_needs_and_no_others(rendered: dict[str, list[dict[str, Any]]]) -> None:
    secrets = {
        name.removeprefix("rel-ett-"): {v["secret"]["secretName"] for v in spec["volumes"] if "secret" in v}
        for name, _, spec in pods(rendered["secured"])
    }
    assert secrets == {
        "worker": {"kafka-ca", "kafka-worker"},
        "sink": {"kafka-ca", "kafka-sink", "clickhouse-ca", "clickhouse-sink"},
        "windows": {"kafka-ca", "kafka-worker"},
        "topics": {"kafka-ca", "kafka-admin"},
        "migrate": {"clickhouse-ca", "clickhouse-migrate"},
    }


def test_variables_say_what_the_values_say(rendered: dict[str, list[dict[str, Any]]]) -> None:
    told = {
        name.removeprefix("rel-ett-"): {v["name"]: v.get("value") for v in spec["containers"][0]["env"]}
        for name, _, spec in pods(rendered["secured"])
    }
    assert told["sink"]["ETTWATCH_CLICKHOUSE"] == "https://sink@clickhouse.data.svc:8443/ettwatch"
    assert told["migrate"]["ETTWATCH_CLICKHOUSE"] == "https://migrate@clickhouse.data.svc:8443/ettwatch"
    assert told["migrate"]["ETTWATCH_CLUSTER"] == "main"
    assert told["topics"]["ETTWATCH_KAFKA_USER"] == "admin"
    assert told["worker"]["ETTWATCH_KAFKA_SECURITY"] == "SASL_SSL"
    assert told["worker"]["ETTWATCH_PARTITIONS"] == "96"
    assert told["worker"]["ETTWATCH_TOPIC_PREFIX"] == "prod.ett"


@each_set
def test_a_command_line_is_one_that_ettwatch_takes(rendered: dict[str, list[dict[str, Any]]], values: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for _, _, spec in pods(rendered[values]):
        first, *rest = spec["containers"][0]["args"]
        module, _, attribute = project["entry-points"]["ettwatch.commands"][first].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        while isinstance(command, click.Group):
            command = command.commands[rest.pop(0)]
        command.make_context(first, rest)


@each_set
def test_worker_and_sink_are_asked_whether_they_live_and_are_ready(
    rendered: dict[str, list[dict[str, Any]]], values: str
) -> None:
    for name, _, spec in pods(rendered[values]):
        (container,) = spec["containers"]
        if name.endswith(("worker", "sink", "windows", "alerts")):
            assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
            assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
            web = {v["name"]: v.get("value") for v in container["env"]}["ETTWATCH_WEB"]
            assert web == f"0.0.0.0:{container['ports'][0]['containerPort']}"
        else:
            assert spec["restartPolicy"] == "Never"


def test_one_process_looks_for_regressions_with_a_volume_and_the_secrets_that_its_rules_name(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    assert not [each for each in rendered["small"] if each["metadata"]["name"].endswith("alerts")]
    alerts = named(rendered["alerts"], "StatefulSet", "alerts")["spec"]
    assert alerts["replicas"] == 1
    spec = alerts["template"]["spec"]
    (container,) = spec["containers"]
    told = {v["name"]: v.get("value") for v in container["env"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    secrets = {v["name"]: v["secret"]["secretName"] for v in spec["volumes"] if "secret" in v}
    assert mounts[alerts["volumeClaimTemplates"][0]["metadata"]["name"]] == told["ETTWATCH_ALERT_STATE"]
    assert told["ETTWATCH_ALERT_RULES"] == f"{mounts['rules']}/rules.yaml"
    assert told["ETTWATCH_OWNERS"] == f"{mounts['owners']}/owners.yaml"
    assert told["ETTWATCH_CLICKHOUSE"] == "http://alerts@clickhouse:8123/ettwatch"
    assert {secrets[name]: mounts[name] for name in secrets if mounts[name].startswith("/etc/ettwatch/secrets/")} == {
        name: f"/etc/ettwatch/secrets/{name}" for name in ("chat", "pager.example")
    }
    assert not [
        e for e in rendered["alerts"] if e["kind"] == "ScaledObject" and e["metadata"]["name"].endswith("alerts")
    ]
    (policy,) = [
        e["spec"]
        for e in rendered["alerts"]
        if e["kind"] == "NetworkPolicy" and e["metadata"]["name"].endswith("alerts")
    ]
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 8123, 9092, 9093}


def test_the_windows_read_the_ownership_file_of_a_config_map(render: Render) -> None:
    rendered = render("small", "--set", "windows.owners.configMap=teams", "--set", "windows.owners.key=teams.yaml")
    spec = named(rendered, "Deployment", "windows")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (items,) = [v["configMap"]["items"] for v in spec["volumes"] if v["name"] == "owners"]
    told = {v["name"]: v.get("value") for v in container["env"]}
    assert told["ETTWATCH_OWNERS"] == f"{mounts['owners']}/{items[0]['path']}"
    assert items[0]["key"] == "teams.yaml"
    plain = named(render("small"), "Deployment", "windows")["spec"]["template"]["spec"]
    assert "ETTWATCH_OWNERS" not in {v["name"] for v in plain["containers"][0]["env"]}


def test_a_worker_of_a_stateful_set_keeps_its_name_and_its_volume(rendered: dict[str, list[dict[str, Any]]]) -> None:
    worker = named(rendered["small"], "StatefulSet")
    env = {v["name"]: v for v in worker["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["ETTWATCH_INSTANCE"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    (claim,) = worker["spec"]["volumeClaimTemplates"]
    mounts = {m["name"]: m["mountPath"] for m in worker["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == env["ETTWATCH_STATE_DIR"]["value"]
    assert worker["spec"]["serviceName"] in {s["metadata"]["name"] for s in rendered["small"] if s["kind"] == "Service"}


def test_a_worker_of_a_deployment_has_no_name_that_another_could_take(
    rendered: dict[str, list[dict[str, Any]]],
) -> None:
    worker = named(rendered["hpa"], "Deployment", "worker")
    assert "ETTWATCH_INSTANCE" not in {v["name"] for v in worker["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert "emptyDir" in {v["name"]: v for v in worker["spec"]["template"]["spec"]["volumes"]}["state"]


@each_set
def test_selectors_find_the_pods_that_they_mean(rendered: dict[str, list[dict[str, Any]]], values: str) -> None:
    labels = {name: told for name, told, _ in pods(rendered[values])}
    for each in rendered[values]:
        spec, name = each.get("spec", {}), each["metadata"]["name"]
        if each["kind"] in ("PodDisruptionBudget", "StatefulSet", "Deployment"):
            wanted = spec["selector"]["matchLabels"]
        elif each["kind"] == "NetworkPolicy":
            wanted = spec["podSelector"]["matchLabels"]
        elif each["kind"] == "Service":
            wanted = spec["selector"]
        else:
            continue
        assert [pod for pod, told in labels.items() if wanted.items() <= told.items()] == [name]


@each_set
def test_a_node_can_be_drained(rendered: dict[str, list[dict[str, Any]]], values: str) -> None:
    budgets = [each for each in rendered[values] if each["kind"] == "PodDisruptionBudget"]
    assert len(budgets) == 3
    for budget in budgets:
        assert budget["spec"]["maxUnavailable"] not in (0, "0", "0%")
        assert "minAvailable" not in budget["spec"]


def test_the_network_is_open_only_for_what_is_needed(rendered: dict[str, list[dict[str, Any]]]) -> None:
    policies = {
        each["metadata"]["name"].removeprefix("rel-ett-"): each["spec"]
        for each in rendered["secured"]
        if each["kind"] == "NetworkPolicy"
    }
    ports = {
        name: {port["port"] for rule in spec["egress"] for port in rule["ports"]} for name, spec in policies.items()
    }
    assert ports == {
        "worker": {53, 9093},
        "sink": {53, 9093, 8443},
        "windows": {53, 9093},
        "topics": {53, 9093},
        "migrate": {53, 8443},
    }
    assert all(set(spec["policyTypes"]) == {"Ingress", "Egress"} for spec in policies.values())
    assert policies["topics"]["ingress"] == policies["migrate"]["ingress"] == []
    assert all("to" in rule for spec in policies.values() for rule in spec["egress"])
    assert not [each for each in rendered["bare"] if each["kind"] == "NetworkPolicy"]


def test_jobs_run_before_an_install_in_the_right_order(rendered: dict[str, list[dict[str, Any]]]) -> None:
    weights = {}
    for each in rendered["small"]:
        notes = each["metadata"].get("annotations", {})
        if "helm.sh/hook" in notes:
            assert notes["helm.sh/hook"] == "pre-install,pre-upgrade"
            assert "before-hook-creation" in notes["helm.sh/hook-delete-policy"]
            weights[each["kind"], each["metadata"]["name"]] = int(notes["helm.sh/hook-weight"])
    order = sorted(weights, key=lambda key: weights[key])
    assert [kind for kind, _ in order] == ["NetworkPolicy", "NetworkPolicy", "Job", "Job"]
    assert [name for kind, name in order if kind == "Job"] == ["rel-ettwatch-topics", "rel-ettwatch-migrate"]
    for each in rendered["small"]:  # nothing that is made later may be needed by them
        if each["kind"] == "Job":
            assert each["spec"]["template"]["spec"]["serviceAccountName"] == "default"


def windows_group(prefix: str) -> str:
    from ettwatch_core.ownership import Owners
    from ettwatch_faust.windows.app import make_windows_app
    from ettwatch_faust.windows.settings import WindowsSettings

    settings = WindowsSettings.read({"ETTWATCH_KAFKA": "kafka:9092", "ETTWATCH_TOPIC_PREFIX": prefix})
    return str(make_windows_app(settings, Owners("none", ()), lambda _: None).conf.id)


def test_scaling_goes_by_the_group_and_the_topics_that_there_are(rendered: dict[str, list[dict[str, Any]]]) -> None:
    from ettwatch_app.sink.settings import inputs

    called = names("ett")
    worker = named(rendered["keda"], "ScaledObject", "worker")["spec"]
    (trigger,) = worker["triggers"]
    assert trigger["metadata"]["consumerGroup"] == called.app
    assert trigger["metadata"]["topic"] == called.events
    assert trigger["metadata"]["sasl"] == "plaintext"
    assert trigger["metadata"]["tls"] == "enable"
    assert trigger["authenticationRef"] == {"name": "kafka-lag"}
    (sink,) = named(rendered["keda"], "ScaledObject", "sink")["spec"]["triggers"]
    assert sink["metadata"]["consumerGroup"] == f"{called.events.partition('.')[0]}-sink"
    assert sink["metadata"]["topic"] in inputs(called)
    (windows,) = named(rendered["keda"], "ScaledObject", "windows")["spec"]["triggers"]
    assert windows["metadata"]["consumerGroup"] == windows_group(called.events.partition(".")[0])
    assert windows["metadata"]["topic"] == called.segments
    assert windows["metadata"]["lagThreshold"] == "50000"


@pytest.mark.parametrize("values", ["keda", "hpa", "alerts"])
def test_what_scales_names_a_target_that_has_no_fixed_number(
    rendered: dict[str, list[dict[str, Any]]], values: str
) -> None:
    scalers = [e for e in rendered[values] if e["kind"] in ("ScaledObject", "HorizontalPodAutoscaler")]
    assert scalers
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        (found,) = [
            e for e in rendered[values] if e["kind"] == target["kind"] and e["metadata"]["name"] == target["name"]
        ]
        assert "replicas" not in found["spec"]


def test_an_external_metric_is_one_that_there_is(
    rendered: dict[str, list[dict[str, Any]]], watched: dict[str, tuple[str, ...]]
) -> None:
    scalers = [each for each in rendered["hpa"] if each["kind"] == "HorizontalPodAutoscaler"]
    assert {each["metadata"]["name"].rpartition("-")[2] for each in scalers} == {"worker", "sink", "windows"}
    assert {each["spec"]["metrics"][0]["external"]["metric"]["name"] for each in scalers} <= set(watched)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (["image.tag=latest"], "/image/tag"),
        (["kafka.bootstrap="], "/kafka/bootstrap"),
        (["clickhouse.host=http://clickhouse"], "/clickhouse/host"),
        (["worker.args={--password,secret}"], "/worker/args/0"),
        (["worker.env[0].name=ETTWATCH_KAFKA_PASSWORD", "worker.env[0].value=secret"], "/worker/env/0"),
        (["worker.maxUnavailable=0"], "/worker/maxUnavailable"),
        (["worker.replica=3"], "replica"),
        (["autoscaling.kind=keda", "autoscaling.worker.maxReplicas=33"], "only 32 workers can share 32 partitions"),
        (["autoscaling.kind=hpa", "autoscaling.worker.minReplicas=9"], "minReplicas is above maxReplicas"),
        (["autoscaling.kind=hpa", "autoscaling.windows.maxReplicas=33"], "only 32 processes of windows can share 32"),
        (["alerts.replicas=2"], "replicas"),
        (["alerts.enabled=true", "alerts.secrets={Chat}"], "/alerts/secrets/0"),
        (["kafka.security=SASL_SSL"], "kafka.sasl.user"),
        (["kafka.security=SASL_SSL", "kafka.sasl.user=u"], "kafka.sasl.secret"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_values_that_cannot_be_are_refused(refusal: Callable[..., str], told: list[str], why: str) -> None:
    assert why in refusal("small", *[word for each in told for word in ("--set", each)])


def test_the_schema_knows_every_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    wrong = [
        "/".join(map(str, error.absolute_path)) for error in jsonschema.Draft7Validator(schema).iter_errors(defaults)
    ]
    assert set(wrong) == {"kafka/bootstrap", "clickhouse/host"}, "the two that must be said, and no others"


def test_the_versions_are_those_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == version
    assert f"image: ettwatch:{version}" in (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    assert f"ARG VERSION={version}" in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def test_the_notes_say_what_was_installed_and_how_to_look(helm: Any, tmp_path: Path) -> None:
    # helm shows them only with a cluster at hand: here they are rendered as part of a manifest.
    chart = shutil.copytree(CHART, tmp_path / "ettwatch")
    lines = (chart / "templates" / "NOTES.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata:\n  notes: |\n"
    (chart / "templates" / "notes.yaml").write_text(head + "".join(f"    {line}" for line in lines), encoding="utf-8")
    file = ROOT / "tests" / "deploy" / "values" / "keda.yaml"
    only = ("--show-only", "templates/notes.yaml")
    done = helm("template", "rel", chart, "--namespace", "ett", "--kube-version", "1.31", "-f", file, *only)
    assert done.returncode == 0, done.stderr
    notes = yaml.safe_load(done.stdout)["data"]["notes"]
    assert "2 to 32, by keda (StatefulSet, store rocksdb)" in notes
    assert "kubectl -n ett logs rel-ettwatch-worker-0" in notes
    assert "Nothing reads the metrics yet" in notes
    assert "without TLS" not in notes
