"""The consumer group as the engine needs it, over Faust's consumer and the aiokafka consumer in its thread."""

import asyncio
import contextlib
import logging
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError
from faust.types import TP

from ettwatch_faust.finder import Finder

__all__ = ["FaustGroup"]

_LOG: Final = logging.getLogger(__name__)
_TRIES: Final = 5
_METADATA_TRIES: Final = 150
_METADATA_S: Final = 0.2
_ASK_S: Final = 20.0


class FaustGroup:
    """The group of an app.

    Args:
        app: The app.
        topic: The events topic.
        finder: Looks into it.
    """

    def __init__(self, app: Any, topic: str, finder: Finder) -> None:
        self._app = app
        self._topic = topic
        self._finder = finder

    async def partitions(self) -> int:
        """Return how many partitions the events topic has."""
        for _ in range(_METADATA_TRIES):
            # Faust's own answer comes from a snapshot that the leader of the group alone has.
            found = self._app.consumer._thread._ensure_consumer().partitions_for_topic(self._topic)
            if found:
                return len(found)
            await asyncio.sleep(_METADATA_S)  # the client has not asked for it yet
        raise KafkaError(f"the brokers do not tell how many partitions {self._topic} has")

    async def commit(self, offsets: dict[int, int]) -> bool:
        """Commit the next offsets by partition; False if the partitions are not ours any more.

        Faust's own commit ends the worker on the first error of any kind; here one that passes is tried again.
        """
        wanted = {TopicPartition(self._topic, partition): offset for partition, offset in offsets.items()}
        for left in reversed(range(_TRIES)):
            try:
                await self._call("commit", wanted)
            except (CommitFailedError, IllegalStateError):
                return False
            except KafkaError as error:
                if not left:
                    raise
                _LOG.warning("commit failed (%s); it is tried again", error, extra={"event": "cannot_commit"})
            else:
                return True
        return False

    async def ours(self, offsets: dict[int, int]) -> bool | None:
        """Tell whether partitions are still ours, by committing once more what is; None: the brokers do not say."""
        wanted = {TopicPartition(self._topic, partition): offset for partition, offset in offsets.items()}
        try:
            await asyncio.wait_for(self._call("commit", wanted), _ASK_S)
        except (CommitFailedError, IllegalStateError):
            return False
        except (KafkaError, TimeoutError):
            return None
        return True

    async def committed(self, partition: int) -> tuple[int | None, int]:
        """Return the committed next offset (None: none is), and the first offset that is still there."""
        place = TopicPartition(self._topic, partition)
        committed = await self._call("committed", place)
        first = (await self._call("beginning_offsets", [place]))[place]
        return committed, first

    async def first(self, partition: int, offset: int) -> int | None:
        """Return the offset of the first record from an offset on, as the brokers have it; None: not known."""
        return await self._finder.first(partition, offset)

    async def seek(self, partition: int, offset: int) -> None:
        """Read on from an offset."""
        with contextlib.suppress(IllegalStateError):  # the partition went meanwhile
            await self._app.consumer.seek(TP(self._topic, partition), offset)

    def highwater(self, partition: int) -> int | None:
        """Return the next offset that will be written; None: not known yet."""
        try:
            found: int | None = self._app.consumer.highwater(TP(self._topic, partition))
        except (IllegalStateError, AssertionError):
            return None
        return found

    async def close(self) -> None:
        """Let go of the connections."""
        await self._finder.close()

    async def _call(self, method: str, *args: Any) -> Any:
        """Call the aiokafka consumer in its own thread."""
        thread = self._app.consumer._thread
        return await thread.call_thread(getattr(thread._ensure_consumer(), method), *args)
