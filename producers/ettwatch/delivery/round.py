"""One look at what waits, and the sending of a load of it."""

from contextlib import suppress
from time import sleep
from typing import TYPE_CHECKING, Final

from ettwatch.delivery.election import Election, Role
from ettwatch.delivery.guard import importing
from ettwatch.delivery.load import Load, key_of, load
from ettwatch.delivery.record import Record
from ettwatch.delivery.room import Room
from ettwatch.delivery.waiting import WaitingFile, WaitingFolder
from ettwatch.log import warn
from ettwatch.names import slug
from ettwatch.settings import Brokers, Settings
from ettwatch.transport import FileTransport

if TYPE_CHECKING:
    from ettwatch.delivery.producer import Producer

BREATH_S: Final = 0.001
"""Seconds for which the thread steps back between chunks."""
ROTATE_BYTES: Final = 256 * 1024
"""A file of one's own that is this long and sent to its end is closed, so that it can be removed."""
MEMORY_LINES: Final = 500


class Round:
    """Does the work of a courier, on the courier's thread. Every method raises as it comes."""

    def __init__(self, settings: Settings, host: str, transport: FileTransport) -> None:
        assert settings.brokers is not None
        self._brokers: Brokers = settings.brokers
        self._transport = transport
        folder, host = settings.spool, slug(host, 60)
        self._election = Election(folder, host)
        self._waiting = WaitingFolder(folder, host)
        self._room = Room(folder, host, settings.spool_bytes)
        self._producer: Producer | None = None
        self._led = False
        self._role: Role = "follows"

    @property
    def leads(self) -> bool:
        """Whether it had the lead when it last looked."""
        return self._role == "leads"

    def after_fork(self) -> None:
        """Let go, in a child, of the parent's lock; leave its connection alone."""
        self._election.resign()
        if self._producer is not None:
            self._producer.disown()

    def watch(self) -> list[WaitingFile]:
        """Look at the folder, keep it within its room, and return the files that are this process's to send.

        A folder that cannot be looked at has none: what is in memory may be sent all the same.
        """
        try:
            self._role = self._election.role()
        except OSError:  # a full disk, say
            self._role = "alone"
        try:
            return self._watch()
        except OSError as error:
            warn("looking", f"cannot look for events in {self._waiting.folder}: {error}; those that are there wait")
            self._waiting.forget()
            return []

    def _watch(self) -> list[WaitingFile]:
        if self._role != "leads":
            self._led = False
            self._waiting.forget()
            self._transport.sheds = self._room.is_out
            return self._waiting.look(self._transport.process) if self._role == "alone" else []
        files = self._waiting.look()
        if not self._led:
            self._led = True
            self._waiting.sweep()
        self._transport.drops.add("spool_full", self._room.keep(files, _breathe))
        self._transport.sheds = self._room.is_out
        return files

    def send(self, own_first: bool = False) -> bool:
        """Send a load of what waits; tell whether there is more. Raises Undelivered, BrokersError and others."""
        files = self.watch()
        if own_first:
            files.sort(key=lambda file: not file.name.startswith(self._transport.process))
        files = [file for file in files if not self._is_done(file)]
        more = self._send_files(load(files, _breathe)) if files else False
        return self._send_memory() or more

    def _is_done(self, file: WaitingFile) -> bool:
        """Remove a file that was sent to its end; tell whether there is nothing to send in it."""
        if file.offset < file.size:
            return False
        try:
            if file.is_left():
                if file.offset < file.size:  # it grew before its writer ended
                    return False
                file.remove()
            elif file.size >= ROTATE_BYTES:
                self._transport.rotate(file.path, file.size)
        except OSError:
            return True  # gone, or not ours to remove: the next look tells
        return True

    def _send_files(self, cargo: Load) -> bool:
        self._deliver(cargo.records)
        self._transport.drops.add("damaged", cargo.damaged)
        for file, offset in cargo.reach.items():
            file.advance(offset)
            self._is_done(file)
        return cargo.full

    def _send_memory(self) -> bool:
        """Send what could not be written: a full disk keeps nothing from the brokers. Tell whether there is more."""
        self._transport.retry()
        if not self._transport.waiting:
            return False
        lines = self._transport.oldest(MEMORY_LINES)
        records: list[Record] = []
        for _, line in lines:
            key = key_of(line)
            if key is not None and (not records or records[-1].key != key):
                records.append(Record(key, []))
            if key is not None:
                records[-1].lines.append(line.rstrip(b"\n"))
        self._deliver(records)
        if lines:
            self._transport.sent(lines[-1][0])
        return bool(self._transport.waiting)

    def _deliver(self, records: list[Record]) -> None:
        if not records:
            return
        if self._producer is None:
            self._producer = connect(self._brokers)
        for record, taken in zip(records, self._producer.send(records), strict=True):
            if not taken:
                each = [Record(record.key, [line]) for line in record.lines]
                refused = self._producer.send(each).count(False) if len(each) > 1 else 1
                self._transport.drops.add("refused", refused)

    def disconnect(self) -> None:
        """Let go of the brokers; the next load connects again."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def leave(self) -> None:
        """Leave the lead to others."""
        self._election.resign()
        self._waiting.forget()
        self._led = False

    def left_behind(self) -> bool:
        """Tell whether somebody who relied on this process left something, after it has left the lead."""
        found = False
        with suppress(OSError):
            for file in self._waiting.look():
                with suppress(OSError):  # gone, or not ours to read
                    found = found or (file.offset < file.size and file.is_left())
        self._waiting.forget()
        return found

    def close(self) -> None:
        """Let go of everything."""
        self.leave()
        self.disconnect()


def connect(brokers: Brokers) -> "Producer":
    """Return a producer that is connected. Only who has something to send pays for its import."""
    with importing():
        from ettwatch.delivery.producer import Producer

    return Producer(brokers)


def _breathe() -> None:
    sleep(BREATH_S)
