"""Whether the partitions are still this worker's, as the coordinator of the group sees it."""

from collections.abc import Awaitable, Callable
from typing import Final

from ettwatch_faust.ports import Group

__all__ = ["Tenure"]

_PAUSE_S: Final = 1.0


class Tenure:
    """The time for which a worker may take its partitions for its own.

    A process that stood still, or was cut off, for longer than the session timeout does not know that others work on
    its partitions. What it sends then is behind the times, and may hold rows that its successor never had and so never
    takes back. So before something is sent, the coordinator is asked, unless it has just answered.

    Args:
        group: The consumer group.
        certain_s: For how long an answer counts: at most the session timeout.
        monotonic: A monotonic clock (s), which goes on while the process stands still.
        sleep: Waits.
        tell: Told why it cannot go on, and None when it can.
    """

    def __init__(
        self,
        group: Group,
        certain_s: float,
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        tell: Callable[[str | None], None],
    ) -> None:
        self._group = group
        self._certain_s = certain_s
        self._monotonic = monotonic
        self._sleep = sleep
        self._tell = tell
        self._offsets: dict[int, int] = {}
        self._until_s = 0.0

    def begin(self, offsets: dict[int, int]) -> None:
        """Begin with these partitions, which are committed up to there. Nothing is certain yet."""
        self._offsets, self._until_s = dict(offsets), 0.0

    async def commit(self, offsets: dict[int, int]) -> bool:
        """Commit the next offsets by partition; False if the partitions are not ours any more."""
        asked_s = self._monotonic()
        if not await self._group.commit(offsets):
            return False
        self._offsets |= offsets
        self._until_s = asked_s + self._certain_s
        return True

    async def lasts(self, go_on: Callable[[], bool]) -> bool:
        """Tell whether the partitions are still ours; ask until that is answered.

        Args:
            go_on: Asked before each try; where it says no the answer is no.
        """
        told = False
        while go_on():
            if self._monotonic() < self._until_s or not self._offsets:
                return True
            asked_s = self._monotonic()
            ours = await self._group.ours(dict(self._offsets))
            if ours is None:
                told = True
                self._tell("the brokers do not say whose the partitions are; they are asked again until they do")
                await self._sleep(_PAUSE_S)
                continue
            if told:
                self._tell(None)
            if not ours:
                return False
            self._until_s = asked_s + self._certain_s
        return False
