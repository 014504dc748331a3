"""Every setting of a worker: by its option, by its variable, and what cannot be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ettwatch_app.commands.worker import worker
from ettwatch_faust import BrokersError, SettingError
from ettwatch_faust.app import make_app
from ettwatch_faust.settings import WORKER_SETTINGS, WorkerSettings

KAFKA = {"ETTWATCH_KAFKA": "broker:9092"}
SECOND = 1_000_000

GOOD: dict[str, tuple[str, str, Any]] = {
    "--store": ("rocksdb", "store", "rocksdb"),
    "--state-dir": ("/var/lib/x", "state_dir", Path("/var/lib/x")),
    "--states": ("12", "states", 12),
    "--flush-every": ("250ms", "flush_s", 0.25),
    "--publish-every": ("1m", "publish_us", 60 * SECOND),
    "--look-every": ("2h", "look_us", 7200 * SECOND),
    "--lateness": ("90m", "lateness_us", 5400 * SECOND),
    "--dlq-limit": ("0", "dlq_limit", 0),
    "--session-timeout": ("45", "session_timeout_s", 45.0),
    "--instance": ("pod-3", "instance", "pod-3"),
    "--web": ("0.0.0.0:80", "web", "0.0.0.0:80"),
}

BAD: dict[str, tuple[str, ...]] = {
    "--store": ("disk", "Memory"),
    "--states": ("-1", "many", "1.5", "9" * 13, "²"),
    "--flush-every": ("0", "-1s", "soon", "1000000h"),
    "--publish-every": ("0s", "x"),
    "--look-every": ("0", "5 parsecs"),
    "--lateness": ("0", "never", "-6h"),
    "--dlq-limit": ("-1", "few"),
    "--session-timeout": ("0", "a while"),
    "--web": ("here", "host:port", "host:65536", ""),
}


def variable(option: str) -> str:
    return next(setting.variable for setting in WORKER_SETTINGS if setting.option == option)


def by_option(option: str, value: str) -> WorkerSettings:
    return WorkerSettings.read(KAFKA, {option[2:].replace("-", "_"): value})


def by_variable(option: str, value: str) -> WorkerSettings:
    return WorkerSettings.read({**KAFKA, variable(option): value})


def test_each_setting_is_tried_here() -> None:
    assert list(GOOD) == [setting.option for setting in WORKER_SETTINGS]


def test_without_settings_there_are_defaults() -> None:
    settings = WorkerSettings.read(KAFKA)
    assert settings == WorkerSettings(settings.access, state_dir=Path(".ettwatch/worker"))
    for setting in WORKER_SETTINGS:
        assert by_option(setting.option, setting.default) == settings, "what is told to users is so"


@pytest.mark.parametrize("option", GOOD)
def test_a_setting_by_option_and_by_variable(option: str) -> None:
    text, name, value = GOOD[option]
    assert getattr(WorkerSettings.read(KAFKA), name) != value
    assert getattr(by_option(option, text), name) == value
    assert getattr(by_variable(option, text), name) == value
    assert getattr(by_variable(option, f" {text} "), name) == value
    both = WorkerSettings.read({**KAFKA, variable(option): "?"}, {option[2:].replace("-", "_"): text})
    assert getattr(both, name) == value, "the option overrules the variable"


@pytest.mark.parametrize(("option", "text"), [(option, text) for option, texts in BAD.items() for text in texts])
def test_what_cannot_be_is_refused_by_name(option: str, text: str) -> None:
    with pytest.raises(SettingError) as caught:
        by_option(option, text)
    assert str(caught.value).startswith(f"{option} ({variable(option)}): ")
    assert "\n" not in str(caught.value)
    if text:
        with pytest.raises(SettingError, match=variable(option)):
            by_variable(option, text)


def test_no_lateness() -> None:
    for text in ("none", "None"):
        settings = by_option("--lateness", text)
        assert settings.lateness_us is None
        assert settings.policy.rules.lateness is None


def test_nothing_is_served() -> None:
    assert by_option("--web", "off").web == "off"


def test_topics_and_brokers() -> None:
    env = {"ETTWATCH_KAFKA": "a:1", "ETTWATCH_TOPIC_PREFIX": "one", "ETTWATCH_PARTITIONS": "7"}
    by_env = WorkerSettings.read(env)
    assert (by_env.access.brokers, by_env.topics.prefix, by_env.topics.partitions) == (("a:1",), "one", 7)
    told = WorkerSettings.read(env, {"bootstrap": "b:2,c:3", "prefix": "two", "partitions": 9})
    assert (told.access.brokers, told.topics.prefix, told.topics.partitions) == (("b:2", "c:3"), "two", 9)
    with pytest.raises(BrokersError, match="no Kafka broker is named"):
        WorkerSettings.read({})
    with pytest.raises(SettingError, match="partitions 0 is out of range"):
        WorkerSettings.read(env, {"partitions": 0})
    with pytest.raises(SettingError, match="ETTWATCH_PARTITIONS='x'"):
        WorkerSettings.read({**env, "ETTWATCH_PARTITIONS": "x"})


def test_the_policy_is_as_it_was_told() -> None:
    policy = by_option("--look-every", "10s").policy
    assert policy.pace.running_us == 10 * SECOND
    assert policy.pace.waiting_us == 60 * SECOND, "who waits is not looked at more often than each minute"
    assert policy.pace.rules == policy.rules
    assert policy.pace.expire_lost_us == 30 * 86_400 * SECOND
    assert by_option("--publish-every", "1s").policy.publish_us == SECOND


def test_the_command_has_all_options() -> None:
    options = {name for parameter in worker.params for name in parameter.opts}
    assert options == {"--bootstrap", "--prefix", "--partitions", *(setting.option for setting in WORKER_SETTINGS)}


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({}, {"broker_session_timeout": 30.0, "broker_heartbeat_interval": 3.0, "datadir": Path("ett-worker-data")}),
        ({"ETTWATCH_SESSION_TIMEOUT": "6s"}, {"broker_session_timeout": 6.0, "broker_heartbeat_interval": 2.0}),
        ({"ETTWATCH_SESSION_TIMEOUT": "2m"}, {"broker_session_timeout": 120.0, "broker_request_timeout": 125.0}),
        ({"ETTWATCH_INSTANCE": "w-1"}, {"consumer_group_instance_id": "w-1"}),
        ({"ETTWATCH_TOPIC_PREFIX": "x"}, {"id": "x-worker"}),
        ({"ETTWATCH_PARTITIONS": "4"}, {"topic_partitions": 4}),
    ],
)
def test_the_app_gets_what_was_told(env: Mapping[str, str], wanted: Mapping[str, Any]) -> None:
    app = make_app(WorkerSettings.read({**KAFKA, **env}))
    assert {name: getattr(app.conf, name) for name in wanted} == wanted
