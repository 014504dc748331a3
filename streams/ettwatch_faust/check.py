"""Whether the topics that are there are as they have to be, and what to do where they are not. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ettwatch_faust.topics import TopicSpec

Code = Literal[
    "ok",
    "missing",
    "too_few_partitions",
    "partitions_differ",
    "too_few_replicas",
    "wrong_cleanup_policy",
    "wrong_retention",
    "wrong_message_size",
    "wrong_timestamps",
    "wrong_min_insync",
    "wrong_compaction",
]


class Seen(NamedTuple):
    """A topic as the brokers tell of it; `replication` is that of its worst partition."""

    partitions: int
    replication: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say of a topic.

    Attributes:
        topic: Its name.
        code: `ok`, or what is wrong.
        found: What is there.
        wanted: What has to be.
        fix: What to do.
    """

    topic: str
    code: Code
    found: str = ""
    wanted: str = ""
    fix: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.code == "ok"

    @property
    def stops(self) -> bool:
        """Whether nothing may begin with it. Retention, sizes and the like are only worth a word."""
        return self.code in ("missing", "too_few_partitions", "partitions_differ")


def check(view: Mapping[str, Seen], plan: Sequence[TopicSpec]) -> list[Finding]:
    """Compare the topics that are there with the plan; one finding at least for each topic of the plan.

    More than was planned is right: partitions, copies, retention, sizes. The topics with the key `job` must have
    equally many partitions.
    """
    counts = {spec.name: view[spec.name].partitions for spec in plan if spec.shared and spec.name in view}
    leader = next(iter(counts), "")
    found: list[Finding] = []
    for spec in plan:
        seen = view.get(spec.name)
        if seen is None:
            found.append(
                Finding(spec.name, "missing", "", _count(spec.partitions, "partition"), "ettwatch topics create")
            )
            continue
        wrong = [*_amounts(spec, seen), *_configs(spec, seen.configs)]
        if spec.shared and seen.partitions >= spec.partitions and seen.partitions != counts[leader]:
            wrong.append(_differs(spec.name, seen.partitions, leader, counts[leader]))
        found += wrong or [Finding(spec.name, "ok", _size(seen))]
    return found


def clash(view: Mapping[str, Seen], plan: Sequence[TopicSpec]) -> str | None:
    """Say why the missing topics must not be created as planned; None where they may.

    Topics with the key `job` that are there and those to come would have different numbers of partitions.
    """
    shared = [spec for spec in plan if spec.shared]
    for spec in shared:
        seen = view.get(spec.name)
        if seen is not None and seen.partitions != spec.partitions and any(each.name not in view for each in shared):
            return (
                f"{spec.name} is there with {_count(seen.partitions, 'partition')}, not {spec.partitions}; create the "
                f"others with --partitions {seen.partitions}, or delete all topics of the prefix first"
            )
    return None


def _size(seen: Seen) -> str:
    return f"{_count(seen.partitions, 'partition')}, {seen.replication} {'copy' if seen.replication == 1 else 'copies'}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _differs(name: str, partitions: int, leader: str, wanted: int) -> Finding:
    return Finding(
        name,
        "partitions_differ",
        _count(partitions, "partition"),
        f"{wanted}, as {leader} has",
        f"stop the workers, delete {name}, and ettwatch topics create --partitions {wanted}",
    )


def _amounts(spec: TopicSpec, seen: Seen) -> list[Finding]:
    wrong: list[Finding] = []
    if seen.partitions < spec.partitions:
        # To raise the number moves jobs to other partitions, away from their state.
        wrong.append(
            Finding(
                spec.name,
                "too_few_partitions",
                str(seen.partitions),
                f"at least {spec.partitions}",
                f"settle for it (--partitions {seen.partitions}), or delete all topics of the prefix, then create them"
                if spec.shared
                else f"kafka-topics.sh --alter --topic {spec.name} --partitions {spec.partitions}",
            )
        )
    if seen.replication < spec.replication:
        wrong.append(
            Finding(
                spec.name,
                "too_few_replicas",
                str(seen.replication),
                f"at least {spec.replication}",
                f"kafka-reassign-partitions.sh, or settle for it: --replication {seen.replication}",
            )
        )
    return wrong


def _configs(spec: TopicSpec, configs: Mapping[str, str]) -> list[Finding]:
    wrong: list[Finding] = []

    def refuse(code: Code, name: str, wanted: str, at: str = "") -> None:
        # kafka-configs.sh takes a comma inside a value in square brackets only.
        value = f"[{wanted}]" if "," in wanted else wanted
        wrong.append(
            Finding(
                spec.name,
                code,
                f"{name}={configs.get(name, 'unknown')}",
                f"{at}{wanted}",
                f"kafka-configs.sh --alter --topic {spec.name} --add-config {name}={value}",
            )
        )

    def number(name: str) -> int:
        return int(configs.get(name) or 0)

    if set(configs.get("cleanup.policy", "").split(",")) != set(spec.cleanup.split(",")):
        refuse("wrong_cleanup_policy", "cleanup.policy", spec.cleanup)
    kept = number("retention.ms")
    if spec.retention_ms is not None and 0 <= kept < spec.retention_ms:
        refuse("wrong_retention", "retention.ms", str(spec.retention_ms), "at least ")
    if number("max.message.bytes") < spec.max_message_bytes:
        refuse("wrong_message_size", "max.message.bytes", str(spec.max_message_bytes), "at least ")
    stamps = spec.configs()["message.timestamp.type"]
    if configs.get("message.timestamp.type") != stamps:
        refuse("wrong_timestamps", "message.timestamp.type", stamps)
    if number("min.insync.replicas") < spec.min_insync:
        refuse("wrong_min_insync", "min.insync.replicas", str(spec.min_insync), "at least ")
    for name, most in spec.tidy.items():
        if number(name) > most:
            refuse("wrong_compaction", name, str(most), "at most ")
    return wrong
