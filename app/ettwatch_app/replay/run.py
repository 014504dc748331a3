"""A whole replay: files in, lines of JSON out, problems told."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from ettwatch_app.replay.fold import fold
from ettwatch_app.replay.lines import Batch, batches
from ettwatch_app.replay.options import Options
from ettwatch_app.replay.partition import partition
from ettwatch_app.replay.problems import FILE_SHIFT, Problems
from ettwatch_app.replay.results import Results
from ettwatch_app.replay.spill import Spill
from ettwatch_app.replay.streamed import Streamed
from ettwatch_app.replay.tally import decoded
from ettwatch_app.replay.unpack import DamagedInput, ForeignInput, unpacked
from ettwatch_schemas import MAX_MESSAGE_BYTES, DecodeError, decode_message

_CUT = "; the line has no line break: the file was cut off here, or is still being written"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a replay.

    Attributes:
        results: One line of JSON for each job, in the order in which the jobs first appeared.
        problems: What was rejected.
        accepted: Number of events that count.
        spilled: Whether a temporary file was needed.
    """

    results: Results
    problems: Problems
    accepted: int
    spilled: bool


def replay_files(names: Sequence[str], options: Options) -> Outcome:
    """Fold the events of `names` (`-`: standard input) to summaries.

    What cannot be read or decoded is in the outcome's problems.
    Raises OSError when a temporary file cannot take more (see TMPDIR).
    """
    shown = ["<stdin>" if name == "-" else _printable(name) for name in names]
    problems = Problems(shown)
    results = Results()
    options.meter.begin("reading", _total(names))
    if options.rules.lateness is None:
        accepted, spilled = _by_bucket(names, options, problems, results)
    else:
        accepted, spilled = _by_pass(names, options, problems, results), False
    return Outcome(results, problems, accepted, spilled)


def _by_bucket(names: Sequence[str], options: Options, problems: Problems, results: Results) -> tuple[int, bool]:
    spill = Spill(options.memory)
    try:
        for index, name in enumerate(names):
            for batch in _batches(index, name, options, problems):
                place = (index << FILE_SHIFT) + batch.first
                partition(spill, range(place, place + len(batch.lines)), batch.lines, 0, problems)
        if spill.spilled:
            # What is left in memory would stand beside the jobs of every bucket.
            spill.flush()
        options.meter.begin("adding up", sum(spill.sizes))
        return fold(spill, 0, options, problems, results), spill.spilled
    finally:
        spill.close()


def _by_pass(names: Sequence[str], options: Options, problems: Problems, results: Results) -> int:
    streamed = Streamed(options, problems, results)
    for index, name in enumerate(names):
        streamed.begin_file()
        for batch in _batches(index, name, options, problems):
            place = (index << FILE_SHIFT) + batch.first
            for at, line in enumerate(batch.lines, place):
                if line and not line.isspace():
                    for event in decoded(at, line, problems):
                        streamed.add(at, event)
    streamed.finish()
    return streamed.accepted


def _batches(index: int, name: str, options: Options, problems: Problems) -> Iterator[Batch]:
    """Give the lines of one file; that it cannot be read, or not to its end, is a problem of the file."""

    def too_long(number: int) -> None:
        problems.add(
            (index << FILE_SHIFT) + number,
            "too_large",
            f"the line is longer than {MAX_MESSAGE_BYTES:,} bytes, the most that a message may have; "
            "send fewer events in one array",
        )

    last = 0
    try:
        with _opened(name) as file:
            chunks = unpacked(_reader(file), options.meter.advance)
            for batch in batches(chunks, MAX_MESSAGE_BYTES, too_long):
                last = batch.first + len(batch.lines) - 1
                whole = _without_cut_line(index, batch, problems) if batch.cut else batch
                yield whole
    except OSError as error:
        problems.add_file(index, _why(name, error))
    except ForeignInput as error:
        problems.add_file(index, str(error))
    except DamagedInput as error:
        problems.add_file(index, f"{error}; what stands before that place was read, up to line {last:,}")


def _without_cut_line(index: int, batch: Batch, problems: Problems) -> Batch:
    """A last line without a line break counts if it decodes; else it is a problem that says so."""
    line = batch.lines[-1]
    if line.isspace():
        return batch
    events, errors = decode_message(line)
    if events or not errors:
        return batch
    place = (index << FILE_SHIFT) + batch.first + len(batch.lines) - 1
    problems.add(place, errors[0].code, _with_cut(errors[0]))
    return batch._replace(lines=batch.lines[:-1])


def _with_cut(error: DecodeError) -> str:
    return f"{error}{_CUT}"


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == "-":
        if sys.stdin is None:
            raise OSError("standard input is closed")
        yield sys.stdin.buffer
        return
    with open(name, "rb") as file:
        yield file


def _reader(file: IO[bytes]) -> Callable[[int], bytes]:
    # From a pipe take what is there rather than wait for a full chunk.
    read1: Callable[[int], bytes] | None = getattr(file, "read1", None)
    return read1 or file.read


def _total(names: Sequence[str]) -> int | None:
    total = 0
    for name in names:
        try:
            info = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        except (OSError, ValueError, AttributeError):
            # No such file, or a standard input that is closed or no file: told when it is read.
            continue
        if not stat.S_ISREG(info.st_mode):
            return None
        total += info.st_size
    return total


def _why(name: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file; check the name and the folder"
    if isinstance(error, IsADirectoryError):
        return f"this is a folder; name the files in it, such as {_printable(os.path.join(name, '*.jsonl'))}"
    if isinstance(error, PermissionError):
        return "no permission to read this file"
    return f"cannot be read: {error.strerror or error}"


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
