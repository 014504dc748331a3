"""Every topic of ettwatch, in one place: name, partitions, key, retention, copies, sizes, and what it is for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

from ettwatch_schemas import MAX_MESSAGE_BYTES

Cleanup = Literal["delete", "compact", "compact,delete"]

STATE_TABLE: Final = "state"
"""The table of live jobs; its changelog is a topic."""

_DAY_MS: Final = 24 * 3_600_000
_ROOM: Final = 1_048_576
"""Bytes for the record around the longest message, and for the headers of a dead letter."""

_RAW_BYTES: Final = MAX_MESSAGE_BYTES + _ROOM
_DLQ_BYTES: Final = _RAW_BYTES + _ROOM
_PREFIX: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_MAX_PREFIX: Final = 100


TOPIC_VARIABLES: Final[Mapping[str, str]] = {
    "ETTWATCH_TOPIC_PREFIX": "what the names of the topics begin with",
    "ETTWATCH_PARTITIONS": "partitions of each topic with the key job",
    "ETTWATCH_REPLICATION": "copies of each partition",
}
"""Every variable that says what a site chooses of its topics."""


class SettingError(ValueError):
    """A setting that cannot be. The message says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a site chooses of its topics.

    Attributes:
        prefix: What all names begin with.
        partitions: Of each topic with the key `job`: the most workers that can share the work.
        replication: Copies of each partition, on brokers of their own.
    """

    prefix: str = "ett"
    partitions: int = 32
    replication: int = 3

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix) or len(self.prefix) > _MAX_PREFIX:
            raise SettingError(
                f"the prefix {self.prefix!r} cannot begin the name of a topic; "
                f"use letters, digits, '-', '_' and single dots inside, at most {_MAX_PREFIX}"
            )
        for name, value, most in (("partitions", self.partitions, 10_000), ("replication", self.replication, 15)):
            if not 1 <= value <= most:
                raise SettingError(f"{name} {value} is out of range; give a number from 1 to {most}")

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Read ETTWATCH_TOPIC_PREFIX, ETTWATCH_PARTITIONS and ETTWATCH_REPLICATION. Raises SettingError."""
        usual = cls()
        return cls(
            env.get("ETTWATCH_TOPIC_PREFIX") or usual.prefix,
            _whole(env, "ETTWATCH_PARTITIONS", usual.partitions),
            _whole(env, "ETTWATCH_REPLICATION", usual.replication),
        )


def _whole(env: Mapping[str, str], name: str, usual: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return usual
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise SettingError(f"{name}={text!r} is no whole number; correct it, or unset it")
    return int(text)


class Names(NamedTuple):
    """The names of all topics under one prefix, and of the workers that share them.

    Attributes:
        app: Id of the Faust app, thereby its consumer group, and what the names of its changelogs begin with.
    """

    app: str
    events: str
    dlq: str
    accepted: str
    jobs: str
    attempts: str
    segments: str
    phases: str
    state: str
    parts: str
    windows: str
    windows_state: str
    alerts: str


def names(prefix: str = "ett") -> Names:
    """Return the names under a prefix."""
    app = f"{prefix}-worker"
    return Names(
        app=app,
        events=f"{prefix}.events",
        dlq=f"{prefix}.events.dlq",
        accepted=f"{prefix}.accepted",
        jobs=f"{prefix}.jobs",
        attempts=f"{prefix}.attempts",
        segments=f"{prefix}.segments",
        phases=f"{prefix}.phases",
        state=f"{app}-{STATE_TABLE}-changelog",
        parts=f"{prefix}.windows.parts",
        windows=f"{prefix}.windows",
        windows_state=f"{prefix}.windows.state",
        alerts=f"{prefix}.alerts",
    )


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """How one topic has to be.

    Attributes:
        name: Its full name.
        key: What the key of its records is.
        partitions: How many, at least.
        shared: Whether its partitions are those of the events: as many, and a job has the same number in each.
        replication: Copies of each partition, at least.
        cleanup: What becomes of old records.
        retention_ms: Milliseconds for which records are kept, at least; None where only newer ones replace them.
        max_message_bytes: The largest record batch, at least.
        log_append_time: Whether the broker's clock dates the records, not the producer's.
        min_insync: Copies that must have a record before it is acknowledged.
        tidy: Further settings of compaction, each an upper limit.
        meaning: What it is for.
    """

    name: str
    key: str
    partitions: int
    shared: bool
    replication: int
    cleanup: Cleanup
    retention_ms: int | None
    max_message_bytes: int
    log_append_time: bool
    min_insync: int
    tidy: Mapping[str, int]
    meaning: str

    def configs(self) -> dict[str, str]:
        """Return the settings with which a broker creates it."""
        return {
            "cleanup.policy": self.cleanup,
            "max.message.bytes": str(self.max_message_bytes),
            "message.timestamp.type": "LogAppendTime" if self.log_append_time else "CreateTime",
            "min.insync.replicas": str(self.min_insync),
            **({} if self.retention_ms is None else {"retention.ms": str(self.retention_ms)}),
            **{name: str(value) for name, value in self.tidy.items()},
        }


def plan(settings: TopicSettings) -> list[TopicSpec]:
    """Return every topic, in the order of the data flow."""
    called = names(settings.prefix)
    # A compacted topic is read from its beginning after a crash: what was replaced must go soon.
    tidy = {"segment.bytes": 67_108_864, "max.compaction.lag.ms": 3_600_000}

    def spec(
        name: str,
        meaning: str,
        *,
        key: str = "job",
        cleanup: Cleanup = "delete",
        days: int | None = 7,
        size: int = _RAW_BYTES,
        stamped: bool = False,
        shared: bool = True,
    ) -> TopicSpec:
        return TopicSpec(
            name,
            key,
            settings.partitions if shared else 1,
            shared,
            settings.replication,
            cleanup,
            None if days is None else days * _DAY_MS,
            size,
            stamped,
            2 if settings.replication > 2 else 1,
            tidy if "compact" in cleanup else {},
            meaning,
        )

    return [
        spec(called.events, "what producers send: an event, or an array of events of one job", stamped=True),
        spec(
            called.dlq,
            "what was refused: the original bytes, the reason, and where they were read",
            key="the key that the message had",
            shared=False,
            days=30,
            size=_DLQ_BYTES,
            stamped=True,
        ),
        spec(called.accepted, "events that count, many to a record, on their way to ClickHouse", key="none"),
        spec(called.jobs, "summaries of jobs; the last one of a job counts", cleanup="compact,delete", days=90),
        spec(called.attempts, "summaries of attempts, on their way to ClickHouse"),
        spec(called.segments, "timelines of jobs by hours, on their way to ClickHouse"),
        spec(called.phases, "phases as they were reported, on their way to ClickHouse"),
        spec(called.state, "state of live jobs: a worker goes on from it after a crash", cleanup="compact", days=None),
        spec(
            called.parts,
            "sums of each partition, on their way from stage 1 to stage 2 of the windows",
            key="dimension",
            days=2,
        ),
        spec(called.windows, "figures of rolling windows, on their way to ClickHouse", key="dimension"),
        spec(
            called.windows_state,
            "state of the windows: `ettwatch windows` goes on from it after a crash",
            key="record",
            cleanup="compact",
            days=None,
        ),
        spec(called.alerts, "every state of every alert, for programs", key="alert", shared=False, days=30),
    ]
