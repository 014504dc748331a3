"""What `ettwatch import` does: file by file, to the spool, with a journal of what is done."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

import click

from ettwatch_app.commands._meter import Bar
from ettwatch_app.commands._shared import Refused, opened_input
from ettwatch_app.datafolder import locate, spools
from ettwatch_app.replay.unpack import DamagedInput, ForeignInput, unpacked
from ettwatch_sources import (
    HEAD,
    KIND_NAMES,
    Found,
    Import,
    Journal,
    Kind,
    Options,
    Report,
    Sink,
    SpoolSink,
    StreamSink,
    kind_of,
    line_of,
    walk,
)

_SHOWN: Final = 20
_IMPORTS: Final = ".imports"


class Run:
    """One call of the command: what it was told and what came of it."""

    def __init__(self, kind: str, options: Options, restarts: bool, settings: str, again: bool) -> None:
        self._kind = kind
        self._options = options
        self._restarts = restarts
        self._settings = settings
        self._again = again
        self._next = options.attempt
        self.events = self.files = self.known = self.refused_lines = 0
        self._jobs: set[int] = set()
        """Their hashes: there may be millions, and one job may be in many files."""
        self._kinds: dict[str, list[int]] = {}
        """Files and events by kind."""
        self._where = ""
        self.refused_files: list[tuple[str, str]] = []
        self._refused_before: list[tuple[str, str]] = []
        self._flags: dict[str, int] = {}
        self._lines: list[str] = []
        self._more = 0

    def go(self, names: tuple[str, ...], out: str | None, reports: IO[str] | None, bar: Bar) -> None:
        """Read every file."""
        journal: Journal | None = None
        if out == "-":
            sink: Sink = StreamSink(click.get_binary_stream("stdout"))
        else:
            folder = Path(out) if out is not None else spools(locate())[0]
            sink = SpoolSink(str(folder), "imported")
            journal = Journal(folder / _IMPORTS, self._settings)
            self._where = str(folder) + (", which `ettwatch up` follows" if out is None else "")
        found = list(walk(names))
        bar.begin("importing", sum(f.stat.st_size if f.stat else 0 for f in found))
        try:
            for file in found:
                self._file(file, sink, journal, reports, bar)
            sink.close()
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise Refused(f"cannot write events: {error.strerror or error}; give another --out") from error
        finally:
            if journal is not None:
                journal.close()

    def _file(self, file: Found, sink: Sink, journal: Journal | None, reports: IO[str] | None, bar: Bar) -> None:
        if file.why:
            self._refuse(file.path, file.why, reports)
            return
        before = journal.entry(os.path.abspath(file.path), file.stat) if journal and file.stat else None
        if before is not None and not self._again:
            self._done_before(file.path, before, reports)
            bar.advance(file.stat.st_size if file.stat else 0)
            return
        problems: list[str] = []
        try:
            with opened_input(file.path) as stream:
                chunks = _chunks(file.path, stream, bar.advance, problems)
                head = _head(chunks)
                kind = KIND_NAMES.get(self._kind) or kind_of(head, file.path)
                if kind is None:
                    self._refuse(file.path, _unknown(head), reports)
                    self._note(file, journal, kind=None, refused=_unknown(head))
                    return
                report = self._import(kind, file.path, _again_from(head, chunks), sink)
        except ForeignInput as error:
            self._refuse(file.path, str(error), reports)
            return
        except OSError as error:
            if error.filename != file.path:
                raise
            self._refuse(file.path, f"it cannot be read: {error.strerror or error}", reports)
            return
        sink.flush()
        self._count(file.path, report, problems, reports)
        self._note(
            file,
            journal,
            kind=kind.name,
            events=report.events,
            refused=report.refused,
            last_attempt=report.last_attempt,
        )

    def _done_before(self, path: str, before: dict[str, Any], reports: IO[str] | None) -> None:
        """A file that an earlier run read: what came of it is told once more, so that a run that goes on tells all."""
        self.known += 1
        last, why = before.get("last_attempt"), before.get("refused")
        self._next = max(self._next, last + 1 if isinstance(last, int) else 0)
        told = {"file": path, "kind": before.get("kind"), "events": before.get("events", 0), "before": True}
        if isinstance(why, str):
            self._refused_before.append((path, why))
            told["problems"] = [why]
        elif why:
            told["refused_lines"] = why
        if reports is not None:
            reports.write(json.dumps(told, ensure_ascii=False) + "\n")

    def _import(self, kind: Kind, name: str, chunks: Iterator[bytes], sink: Sink) -> Report:
        options = replace(self._options, attempt=self._next) if self._restarts else self._options
        work = Import(kind, "stdin" if name == "-" else name, chunks, options)
        for told in work.told():
            sink.write(line_of(told))
        if work.report.last_attempt is not None:
            self._next = max(self._next, work.report.last_attempt + 1)
        return work.report

    def _count(self, path: str, report: Report, problems: list[str], reports: IO[str] | None) -> None:
        self.files += 1
        self.events += report.events
        self._jobs.update(map(hash, report.jobs))
        for place, number in enumerate((1, report.events)):
            self._kinds.setdefault(report.kind, [0, 0])[place] += number
        self.refused_lines += report.refused + len(problems)
        doubts = report.doubts
        for flags in doubts.flags.values():
            for code in flags:
                self._flags[code] = self._flags.get(code, 0) + 1
        if not report.events:
            self.refused_files.append((path, f"it is of the kind {report.kind}, but no line gave an event"))
        for problem in problems:
            self._line(f"{path}: {problem}")
        for refusal in doubts.refused:
            self._line(f"{path}:{refusal.line}: {refusal.reason}")
        if report.refused > len(doubts.refused):
            self._line(f"{path}: {_some(report.refused - len(doubts.refused), 'more line')} refused")
        if reports is not None:
            told = {
                "file": path,
                "kind": report.kind,
                "events": report.events,
                "jobs": sorted(report.jobs)[:100],
                "flags": {job or "": flags for job, flags in list(doubts.flags.items())[:1000]},
                "unknown_words": doubts.words,
                "refused": dict(doubts.refusals),
                "first_refused": [{"line": r.line, "reason": r.reason} for r in doubts.refused],
                "problems": problems,
            }
            reports.write(json.dumps(told, ensure_ascii=False) + "\n")

    def _line(self, text: str) -> None:
        self._more += len(self._lines) >= _SHOWN
        if len(self._lines) < _SHOWN:
            self._lines.append(text)

    def _refuse(self, path: str, why: str, reports: IO[str] | None) -> None:
        self.refused_files.append((path, why))
        if reports is not None:
            reports.write(json.dumps({"file": path, "kind": None, "events": 0, "problems": [why]}) + "\n")

    def _note(self, file: Found, journal: Journal | None, **told: Any) -> None:
        if journal is not None and file.stat is not None:
            journal.add(os.path.abspath(file.path), file.stat, **told)

    def say(self) -> None:
        """Tell people what came of it, on standard error."""
        for line in self._lines:
            click.echo(_clean(line), err=True)
        if self._more:
            click.echo(f"{_some(self._more, 'more line')} like these; --report FILE has them by file", err=True)
        for name, files in (("refused", self.refused_files), ("refused before", self._refused_before)):
            for path, why in files[:_SHOWN]:
                click.echo(_clean(f"{name}: {path}: {why}"), err=True)
            if len(files) > _SHOWN:
                more = _some(len(files) - _SHOWN, "more file")
                click.echo(f"{name}: {more}; --report FILE has them", err=True)
        for kind, (number, events) in sorted(self._kinds.items()):
            click.echo(f"{kind}: {_some(events, 'event')} from {_some(number, 'file')}", err=True)
        done = f"{_some(self.events, 'event')} of {_some(len(self._jobs), 'job')} from {_some(self.files, 'file')}"
        before = ""
        if self.known:
            before = f"; {_some(self.known, 'file')} {'was' if self.known == 1 else 'were'} imported before"
            before += f" ({len(self._refused_before):,} of them refused)" if self._refused_before else ""
        refused = f"{_some(len(self.refused_files), 'file')} and {_some(self.refused_lines, 'line')} refused"
        click.echo(f"{done}{before}; {refused}", err=True)
        if self._flags:
            flags = ", ".join(f"{code} ({number:,})" for code, number in sorted(self._flags.items()))
            click.echo(f"flags: {flags}", err=True)
        if self._where and self.events:
            click.echo(f"written to {self._where}", err=True)


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _chunks(path: str, stream: IO[bytes], seen: Callable[[int], None], problems: list[str]) -> Iterator[bytes]:
    some = getattr(stream, "read1", None) or stream.read

    def read(size: int) -> bytes:
        try:
            data: bytes = some(size)
        except OSError as error:  # as from a disk that fails: what is written may fail for the same reason
            raise OSError(error.errno, error.strerror, path) from None
        return data

    try:
        yield from unpacked(read, seen)
    except DamagedInput as error:
        problems.append(f"{error}; what stands before that place was read")


def _head(chunks: Iterator[bytes]) -> bytes:
    head = b""
    while len(head) < HEAD:
        chunk = next(chunks, None)
        if chunk is None:
            break
        head += chunk
    return head


def _again_from(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from chunks


def _unknown(head: bytes) -> str:
    if not head.strip():
        return "it is empty"
    if b"\0" in head[:4096]:
        return "it is no text"
    return "it looks like no kind that is known; name the kind, or describe it with a mapping file (kind mapped)"


def _clean(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
