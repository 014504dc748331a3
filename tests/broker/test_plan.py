"""The plan of topics, and what is found of those that are there: without brokers."""

from dataclasses import replace

import pytest

from ettwatch_faust import TOPIC_VARIABLES, Seen, SettingError, TopicSettings, TopicSpec, check, clash, names, plan
from ettwatch_schemas import MAX_MESSAGE_BYTES

PLAN = plan(TopicSettings(partitions=8))


def as_planned(spec: TopicSpec) -> Seen:
    return Seen(spec.partitions, spec.replication, spec.configs())


VIEW = {spec.name: as_planned(spec) for spec in PLAN}


def codes(changed: dict[str, Seen]) -> set[tuple[str, str]]:
    return {(found.topic, found.code) for found in check(VIEW | changed, PLAN) if not found.ok}


def test_the_names() -> None:
    assert names() == (
        "ett-worker",
        "ett.events",
        "ett.events.dlq",
        "ett.accepted",
        "ett.jobs",
        "ett.attempts",
        "ett.segments",
        "ett.phases",
        "ett-worker-state-changelog",
        "ett.windows.parts",
        "ett.windows",
        "ett.windows.state",
        "ett.alerts",
    )
    assert [spec.name for spec in plan(TopicSettings("a.b"))] == list(names("a.b")[1:])


def test_all_topics_of_jobs_have_equally_many_partitions() -> None:
    assert {spec.partitions for spec in PLAN if spec.shared} == {8}
    assert [spec.name for spec in PLAN if not spec.shared] == ["ett.events.dlq", "ett.alerts"]


def test_the_longest_message_fits_and_its_dead_letter_too() -> None:
    sizes = {spec.name: spec.max_message_bytes for spec in PLAN}
    assert MAX_MESSAGE_BYTES < sizes["ett.events"] < sizes["ett.events.dlq"]


@pytest.mark.parametrize(("replication", "in_sync"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_one_broker_may_be_lost_where_there_are_three(replication: int, in_sync: int) -> None:
    assert {spec.min_insync for spec in plan(TopicSettings(replication=replication))} == {in_sync}


def test_as_planned_is_right() -> None:
    assert [found.code for found in check(VIEW, PLAN)] == ["ok"] * len(PLAN)


def test_more_than_planned_is_right() -> None:
    more = {spec.name: Seen(16, 4, spec.configs() | {"retention.ms": "-1"}) for spec in PLAN}
    assert all(found.ok for found in check(more, PLAN))


def test_nothing_is_there() -> None:
    found = check({}, PLAN)
    assert [(each.topic, each.code, each.fix) for each in found] == [
        (spec.name, "missing", "ettwatch topics create") for spec in PLAN
    ]


def test_amounts() -> None:
    few = {"ett.jobs": VIEW["ett.jobs"]._replace(partitions=4, replication=1)}
    assert codes(few) == {("ett.jobs", "too_few_partitions"), ("ett.jobs", "too_few_replicas")}
    assert codes({"ett.jobs": VIEW["ett.jobs"]._replace(partitions=9)}) == {("ett.jobs", "partitions_differ")}


def test_what_is_there_and_what_would_come_must_agree() -> None:
    events = {"ett.events": VIEW["ett.events"]._replace(partitions=16)}
    assert clash({}, PLAN) is None
    assert clash({"ett.events": VIEW["ett.events"]}, PLAN) is None
    assert clash(VIEW | events, PLAN) is None, "nothing would come"
    assert clash({"ett.events.dlq": VIEW["ett.events.dlq"]._replace(partitions=5)}, PLAN) is None
    assert "ett.events is there with 16 partitions, not 8" in str(clash(events, PLAN))


@pytest.mark.parametrize(
    ("topic", "name", "value", "code"),
    [
        ("ett.events", "cleanup.policy", "compact", "wrong_cleanup_policy"),
        ("ett.jobs", "cleanup.policy", "compact", "wrong_cleanup_policy"),
        ("ett.events", "retention.ms", "3600000", "wrong_retention"),
        ("ett.events", "max.message.bytes", "1048588", "wrong_message_size"),
        ("ett.events", "message.timestamp.type", "CreateTime", "wrong_timestamps"),
        ("ett.events", "min.insync.replicas", "1", "wrong_min_insync"),
        ("ett-worker-state-changelog", "segment.bytes", "1073741824", "wrong_compaction"),
    ],
)
def test_settings(topic: str, name: str, value: str, code: str) -> None:
    seen = VIEW[topic]
    changed = check(VIEW | {topic: seen._replace(configs={**seen.configs, name: value})}, PLAN)
    (wrong,) = [found for found in changed if not found.ok]
    assert (wrong.topic, wrong.code, wrong.found) == (topic, code, f"{name}={value}")
    assert f"--topic {topic} --add-config {name}=" in wrong.fix


def test_the_order_of_cleanup_policies_does_not_matter_and_a_list_is_quoted() -> None:
    seen = VIEW["ett.jobs"]
    assert not codes({"ett.jobs": seen._replace(configs={**seen.configs, "cleanup.policy": "delete,compact"})})
    jobs = [spec for spec in PLAN if spec.name == "ett.jobs"]
    wrong = check({"ett.jobs": seen._replace(configs={**seen.configs, "cleanup.policy": "delete"})}, jobs)
    assert wrong[0].fix.endswith("cleanup.policy=[compact,delete]")


def test_a_topic_of_unknown_settings_is_not_right() -> None:
    assert len(check({"ett.events": Seen(8, 3, {})}, PLAN[:1])) > 3


def test_settings_are_read() -> None:
    env = {"ETTWATCH_TOPIC_PREFIX": "x", "ETTWATCH_PARTITIONS": "4", "ETTWATCH_REPLICATION": "1"}
    assert TopicSettings.read(env) == TopicSettings("x", 4, 1)
    assert env.keys() == TOPIC_VARIABLES.keys()
    assert TopicSettings.read({"ETTWATCH_PARTITIONS": " "}) == TopicSettings()


@pytest.mark.parametrize("prefix", ["", "a b", ".a", "a..b", "é", "a/", "x" * 101])
def test_a_prefix_that_cannot_be(prefix: str) -> None:
    with pytest.raises(SettingError, match="cannot begin the name of a topic"):
        replace(TopicSettings(), prefix=prefix)


@pytest.mark.parametrize("value", ["0", "-1", "3.5", "many", "10001", "९"])
def test_a_number_that_cannot_be(value: str) -> None:
    with pytest.raises(SettingError, match=r"(?i)partitions"):
        TopicSettings.read({"ETTWATCH_PARTITIONS": value})
