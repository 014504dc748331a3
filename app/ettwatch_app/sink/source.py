"""The records of the topics, as a member of the consumer group of all sinks."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from ettwatch_app.sink.batch import Place, Record
from ettwatch_app.sink.settings import Limits, SinkSettings

log = logging.getLogger(__name__)

_FETCH_BYTES: Final = 16 << 20
_PARTITION_BYTES: Final = 512 << 10
"""Of each partition at once; a single larger record still comes. They bound the memory of records not yet taken."""

_ERROR_PAUSE_S: Final = 1.0


class Owner(Protocol):
    """Who is told that partitions come and go. It must answer soon, and ask the source for nothing but to commit."""

    def assigned(self, places: list[Place]) -> None:
        """These partitions are read from now on, from where they were committed."""

    def revoked(self, *, lost: bool) -> None:
        """No partition is read any more; `lost`: nothing can be committed either."""


class Source:
    """Reads the topics. For one thread.

    Attributes:
        trouble: Why nothing can be read at the moment; None if all is well.

    Args:
        settings: How the brokers are reached, and the name of the group.
        topics: The topics to read.
        owner: Who is told that partitions come and go.
        committed: Called with the offsets that the brokers have taken, or refused to take.
    """

    def __init__(
        self,
        settings: SinkSettings,
        topics: Iterable[str],
        owner: Owner,
        committed: Callable[[Mapping[Place, int], Exception | None], None],
    ) -> None:
        self.trouble: str | None = None
        self._owner = owner
        self._committed = committed
        self._consumer = _consumer(settings)
        wanted = list(topics)
        self._consumer.subscribe(wanted, listener=_Listener(owner))
        for topic in wanted:
            # Who leads the group and does not know a topic gives its partitions to nobody.
            self._consumer.partitions_for_topic(topic)

    def read(self, limits: Limits) -> list[Record]:
        """Return some records; none if there are none within a moment."""
        self._go_on_joining()
        try:
            polled = self._consumer.poll(int(limits.poll_s * 1000), limits.poll_records)
        except KafkaError as error:
            self._fail(error)
            time.sleep(_ERROR_PAUSE_S)
            return []
        self.trouble = None
        return [
            Record(Place(place.topic, place.partition), record.offset, record.timestamp, record.key, record.value)
            for place, records in polled.items()
            for record in records
        ]

    def pause(self, pause: bool) -> None:
        """Read nothing for now, but stay a member; or go on."""
        paused = self._consumer.paused()
        if pause:
            self._consumer.pause(*(self._consumer.assignment() - paused))
        elif paused:
            self._consumer.resume(*(paused & self._consumer.assignment()))

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Have the offsets committed; `committed` is told later. It may be called while partitions are revoked."""
        self._consumer.commit_async(
            _for_kafka(offsets),
            callback=lambda _, result: self._committed(offsets, result if isinstance(result, Exception) else None),
        )

    def commit_now(self, offsets: Mapping[Place, int], seconds: float) -> None:
        """Have the offsets committed; `committed` is told before this returns."""
        try:
            self._consumer.commit(_for_kafka(offsets), timeout_ms=int(seconds * 1000))
        except KafkaError as error:
            self._committed(offsets, error)
        else:
            self._committed(offsets, None)

    def ends(self, topics: Iterable[str], seconds: float = 30) -> dict[Place, int]:
        """Return the present ends of all partitions of the topics.

        Raises:
            KafkaError: The brokers do not tell.
        """
        places = [TopicPartition(topic, n) for topic in topics for n in self._consumer.partitions_for_topic(topic)]
        found = self._consumer.end_offsets(places, timeout_ms=int(seconds * 1000))
        return {Place(place.topic, place.partition): end for place, end in found.items()}

    def position(self, place: Place) -> int | None:
        """Return the offset of the record of a partition that is read next; None if that is not known yet."""
        try:
            found = self._consumer.position(TopicPartition(*place), timeout_ms=1_000)
        except (KafkaError, AssertionError):
            return None
        return None if found is None else int(found)

    def end(self, place: Place) -> int | None:
        """Return the end of a partition as the newest records told it; None if that is not known yet."""
        found = self._consumer.highwater(TopicPartition(*place))
        return None if found is None else int(found)

    def places(self) -> list[Place]:
        """Return the partitions that are read by this member."""
        return sorted(Place(place.topic, place.partition) for place in self._consumer.assignment())

    def close(self, seconds: float = 5) -> None:
        """Leave the group."""
        try:
            self._consumer.close(autocommit=False, timeout_ms=int(seconds * 1000))
        except KafkaError as error:
            log.warning("the group was not left in good order: %s", error, extra={"event": "left_badly"})

    def _go_on_joining(self) -> None:
        """Have the client finish a join that it began.

        kafka-python 3.0 forgets about one that takes longer than a call of `poll`, where it was begun because the
        partitions of a topic changed: the member is given partitions, and never knows of it.
        """
        coordinator = self._consumer._coordinator
        if coordinator.rejoining:
            coordinator.request_rejoin()

    def _fail(self, error: KafkaError) -> None:
        trouble = f"cannot read from Kafka: {type(error).__name__}: {error}"
        if trouble != self.trouble:
            self.trouble = trouble
            log.warning("%s; trying again", trouble, extra={"event": "cannot_read"})


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        if revoked:
            self._owner.revoked(lost=False)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        if lost:
            self._owner.revoked(lost=True)

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._owner.assigned(sorted(Place(place.topic, place.partition) for place in assigned))


def _consumer(settings: SinkSettings) -> Any:
    limits = settings.limits
    return KafkaConsumer(
        **settings.access.client(),
        group_id=settings.group,
        client_id="ettwatch-sink",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        # The next fetch waits for the one before: this is the longest that a record is late by it.
        fetch_max_wait_ms=100,
        fetch_max_bytes=_FETCH_BYTES,
        max_partition_fetch_bytes=_PARTITION_BYTES,
        session_timeout_ms=int(limits.session_s * 1000),
        heartbeat_interval_ms=int(limits.session_s * 200),
        reconnect_backoff_max_ms=2_000,
        metrics_enabled=False,
    )


def _for_kafka(offsets: Mapping[Place, int]) -> dict[Any, Any]:
    return {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
