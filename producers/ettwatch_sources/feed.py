"""What a reader of one file is given: its lines, what the user said about it, and where to put its doubts."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import chain
from typing import Any, Final

from ettwatch_schemas import BaseEvent
from ettwatch_sources.flags import FLAGS
from ettwatch_sources.items import BadJson, Item, items
from ettwatch_sources.lines import Line, lines
from ettwatch_sources.ordering import in_time
from ettwatch_sources.times import Read, from_number, from_text
from ettwatch_sources.told import Refused, Told, make

_KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says about files. None: not said.

    Attributes:
        job: Name of the job; else what the file says, else the file's own name.
        attempt: Number of the first attempt in the file.
        team, model, cluster: As in `job_submitted`.
        gpus: GPUs that an attempt holds.
        zone: The zone of times without one.
        batch: Samples that one step consumes, of all ranks together.
        mapping: How rows become events, for the kind `mapped`.
    """

    job: str | None = None
    attempt: int = 0
    team: str | None = None
    model: str | None = None
    cluster: str | None = None
    gpus: int | None = None
    zone: tzinfo | None = None
    batch: int | None = None
    mapping: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that counts for nothing, and why. `line` is 0 where the file as a whole is meant."""

    line: int
    reason: str


@dataclass(slots=True)
class Doubts:
    """What could not be known, by job, and what was refused."""

    flags: dict[str | None, dict[str, int]] = field(default_factory=dict)
    """Of each job (None: the file) the flags with the line that raised them first."""
    refused: list[Refusal] = field(default_factory=list)
    """The first of them."""
    refusals: Counter[str] = field(default_factory=Counter)
    """How many lines were refused, by a short reason."""
    words: dict[str, int] = field(default_factory=dict)
    """Words that are not known here, with the line that had them first."""

    def of(self, job: str | None) -> tuple[str, ...]:
        """Return the flags of a job and those of the whole file, in the order of the table."""
        found = self.flags.get(None, {}).keys() | self.flags.get(job, {}).keys()
        return tuple(code for code in FLAGS if code in found)


class Feed:
    """One file as a reader sees it."""

    def __init__(self, name: str, chunks: Iterable[bytes], options: Options) -> None:
        self.name = name
        self.options = options
        self.doubts = Doubts()
        self.line = 0
        """The line that is read: events told now stood there."""
        self._chunks = chunks
        self._newest: int | None = None

    @property
    def default_job(self) -> str:
        """The job where the file names none: what the user said, else the file's name without its endings."""
        return self.options.job or stem(self.name)

    def lines(self) -> Iterator[Line]:
        """Yield the lines that can be read; what is odd about them becomes flags and refusals."""
        for line in lines(self._chunks):
            self.line = line.number
            if line.too_long:
                self.refuse("the line is longer than 8 MiB")
                continue
            if line.broken:
                self.flag("invalid_utf8")
            yield line

    def lines_in_time(self, when: Callable[[str], float | str | None]) -> Iterator[Line]:
        """The same in the order of their times, see ordering.in_time. `when` reads the time of a line."""
        for line in in_time(
            self.lines(), lambda line: when(line.text), lambda line: line.text, lambda: self.flag("out_of_order")
        ):
            self.line = line.number
            yield line

    def items(self, key: str | None = None) -> Iterator[Item]:
        """Yield the members of a JSON array, see items.items; the rest of a broken text is refused."""
        return self.items_of(None, self.lines(), key)

    def items_of(self, first: Line | None, rest: Iterator[Line], key: str | None = None) -> Iterator[Item]:
        """The same of lines of which the first was taken already."""
        source = rest if first is None else chain((first,), rest)
        try:
            for item in items(source, key, 1 if first is None else first.number):
                self.line = item.line
                yield item
        except BadJson as error:
            self.line = error.line
            if "cut off" in str(error):
                self.flag("truncated")
            self.refuse(str(error))

    def flag(self, code: str, job: str | None = None) -> None:
        """Note what could not be known, of a job or of the whole file."""
        assert code in FLAGS, f"{code} is no flag"
        self.doubts.flags.setdefault(job, {}).setdefault(code, self.line)

    def unknown(self, word: str, job: str | None = None) -> None:
        """Note a state or reason that is not known here."""
        self.flag("unknown_word", job)
        if len(self.doubts.words) < 1000:
            self.doubts.words.setdefault(word[:200], self.line)

    def refuse(self, reason: str, line: int | None = None) -> None:
        """Note that a line counts for nothing."""
        self.doubts.refusals[re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "…", reason)[:120]] += 1
        if len(self.doubts.refused) < _KEPT:
            self.doubts.refused.append(Refusal(self.line if line is None else line, reason))

    def tell(self, kind: type[BaseEvent], line: int | None = None, **fields: Any) -> Iterator[Told]:
        """Yield the event that stood in this line; one that is wrong is refused and nothing is yielded."""
        try:
            event = make(kind, **fields)
        except Refused as error:
            self.refuse(str(error), line)
            return
        yield Told(event, f"{self.name}:{self.line if line is None else line}")  # type: ignore[arg-type]

    def time_of_text(self, text: str, job: str | None = None) -> int:
        """Read a text as a time. Raises NoTime."""
        return self._noted(from_text(text, self.options.zone), job)

    def time_of_number(self, value: object, unit: str) -> int:
        """Read a number as a time. Raises NoTime."""
        return from_number(value, unit)

    def in_order(self, ts: int, job: str | None = None) -> int:
        """Note where times do not rise, and return the time."""
        if self._newest is not None and ts < self._newest:
            self.flag("out_of_order", job)
        self._newest = ts if self._newest is None else max(ts, self._newest)
        return ts

    def _noted(self, read: Read, job: str | None) -> int:
        for code in read.flags:
            self.flag(code, job)
        return read.ts


_ENDINGS: Final = (".gz", ".zst", ".jsonl", ".json", ".csv", ".txt", ".log", ".out", ".err", ".ndjson")


def stem(name: str) -> str:
    """Return a file's name with its folders and without its endings: `runs/a/train.log.gz` is `runs/a/train`."""
    short = name.removeprefix("./").strip("/")
    while True:
        for ending in _ENDINGS:
            if short.lower().endswith(ending) and len(short) > len(ending):
                short = short[: -len(ending)]
                break
        else:
            return short or "stdin"
