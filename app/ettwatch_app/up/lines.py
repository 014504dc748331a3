"""The lines of one event file from a place on, in bounded memory however long a line is."""

from typing import Final

from ettwatch_app.up.messages import Message, decode_line, too_large
from ettwatch_app.up.place import Place
from ettwatch_app.up.sources import PRINT_BYTES, Source
from ettwatch_schemas import MAX_MESSAGE_BYTES

_SKIP_STEP: Final = 256 * 1024
_SKIP_STEPS: Final = 64


class Lines:
    """Reads and decodes lines. Of a line beyond the limit of a message it keeps only the beginning.

    Args:
        keep: How much of such a line is kept.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._skip: tuple[int, bytes] | None = None  # looked at up to here; its beginning
        self.partial = False
        """Whether the last read ended at the end of the file, within a line."""

    @property
    def skipping(self) -> bool:
        """Whether it stands within a line that is too long."""
        return self._skip is not None

    def restart(self) -> None:
        """Forget where it stands."""
        self._skip = None
        self.partial = False

    def read(
        self, source: Source, place: Place, size: int, latest: int, *, final: bool, settled: bool
    ) -> tuple[list[Message], bool]:
        """Return the next messages, and whether that was all there is.

        Args:
            source: The file.
            place: Where to begin; not moved.
            size: How much to read; one longer line is read as a whole.
            latest: Events later than this (µs) are refused.
            final: Nothing seems to be appended any more: a last line without a newline counts if it is whole.
            settled: Nothing will be appended: such a line is refused if it is not.
        """
        if self._skip is not None:
            return self._skip_line(source, place, *self._skip, settled)
        at = place.offset
        data = source.read(at, size)
        while b"\n" not in data and len(data) == size <= MAX_MESSAGE_BYTES:
            size = min(4 * size, MAX_MESSAGE_BYTES + 1)
            data = source.read(at, size)
        if len(data) > MAX_MESSAGE_BYTES and b"\n" not in data:
            return self._skip_line(source, place, at + len(data), data[: self._keep], settled)
        messages: list[Message] = []
        begin = 0
        while end := data.find(b"\n", begin) + 1:
            number = place.line + len(messages) + 1
            messages.append(decode_line(data[begin:end], at + begin, number, latest=latest))
            begin = end
        over = len(data) < size
        self.partial = over and begin < len(data)
        if self.partial and final:
            number = place.line + len(messages) + 1
            last = decode_line(data[begin:], at + begin, number, latest=latest, cut=True)
            if settled or all(refusal.code != "truncated" for refusal in last.refusals):
                messages.append(last)
                self.partial = False
        return messages, over

    def _skip_line(
        self, source: Source, place: Place, at: int, head: bytes, settled: bool
    ) -> tuple[list[Message], bool]:
        over = False
        for _ in range(_SKIP_STEPS):
            data = source.read(at, _SKIP_STEP)
            newline = data.find(b"\n")
            over = newline < 0 and len(data) < _SKIP_STEP
            at += len(data) if newline < 0 else newline + 1
            if newline >= 0 or (over and settled):
                self.restart()
                tail = source.read(at - PRINT_BYTES, PRINT_BYTES)
                return [too_large(head, place.offset, at, place.line + 1, tail)], over
            if over:
                break
        self._skip = (at, head)
        self.partial = over
        return [], over
