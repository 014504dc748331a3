"""What the engine needs of the world around it."""

from typing import Protocol

__all__ = ["Group"]


class Group(Protocol):
    """The consumer's side of the group, as the engine needs it."""

    async def partitions(self) -> int:
        """Return how many partitions the events topic has."""

    async def commit(self, offsets: dict[int, int]) -> bool:
        """Commit the next offsets by partition; False if the partitions are not ours any more."""

    async def ours(self, offsets: dict[int, int]) -> bool | None:
        """Tell whether partitions are still ours, by committing once more what is; None: the brokers do not say."""

    async def committed(self, partition: int) -> tuple[int | None, int]:
        """Return the committed next offset (None: none is), and the first offset that is still there."""

    async def first(self, partition: int, offset: int) -> int | None:
        """Return the offset of the first record from an offset on, as the brokers have it; None: not known."""

    async def seek(self, partition: int, offset: int) -> None:
        """Read on from an offset."""

    def highwater(self, partition: int) -> int | None:
        """Return the next offset that will be written; None: not known yet."""

    async def close(self) -> None:
        """Let go of the connections."""
