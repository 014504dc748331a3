"""What was wrong with the input: counted in full, shown up to a limit per file, in the order of the lines."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

FILE_SHIFT = 40
"""A place is `file index << FILE_SHIFT | line number`: one integer that sorts as the input reads."""

LINE_MASK = (1 << FILE_SHIFT) - 1


@dataclass(slots=True)
class _FileProblems:
    name: str
    kept: list[tuple[int, int, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


class Problems:
    """Collects problems by place; holds at most `limit` texts a file, those of its first lines."""

    def __init__(self, names: list[str], limit: int = 100) -> None:
        self._files = [_FileProblems(name) for name in names]
        self._limit = limit
        self._serial = 0
        self.rejected = 0
        """Lines and events that count for nothing."""
        self.broken_files = 0
        """Files that could not be read, or not to their end."""

    def add(self, place: int, code: str, reason: object) -> None:
        """Count one rejected line or event; `reason` is turned into text only if it will be shown."""
        self.rejected += 1
        entry = self._files[place >> FILE_SHIFT]
        entry.counts[code] += 1
        line = place & LINE_MASK
        # A heap with the largest line on top; the serial keeps the order of two problems of one line.
        self._serial += 1
        if len(entry.kept) < self._limit:
            heapq.heappush(entry.kept, (-line, -self._serial, str(reason)))
        elif line < -entry.kept[0][0]:
            heapq.heapreplace(entry.kept, (-line, -self._serial, str(reason)))

    def add_file(self, index: int, reason: str) -> None:
        """Note that a file as a whole could not be read, or not to its end."""
        self.broken_files += 1
        self._files[index].notes.append(reason)

    def texts(self) -> Iterator[str]:
        """Yield one line of text for each problem that is shown, and one for those of a file that are not."""
        for entry in self._files:
            for line, _, reason in sorted(entry.kept, key=lambda item: (-item[0], -item[1])):
                yield f"{entry.name}:{-line}: {reason}"
            more = entry.counts.total() - len(entry.kept)
            if more:
                kinds = ", ".join(f"{code} {count:,}" for code, count in entry.counts.most_common())
                yield f"{entry.name}: {more:,} more like these, not shown (rejected in this file: {kinds})"
            for note in entry.notes:
                yield f"{entry.name}: {note}"
