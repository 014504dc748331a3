"""The spool folders: which files are there, what they say, and which are done with."""

import os
import stat as modes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ettwatch_app.up.files import SpoolFile
from ettwatch_app.up.merge import Delivery, merged
from ettwatch_app.up.place import Place, is_event_file
from ettwatch_app.up.settings import Limits


class Spool:
    """Follows the event files of some folders.

    Args:
        folders: The folders; what lies in folders below them is not read.
        places: The places committed earlier.
        limits: The bounds.
        slack: See `merge.merged`.
        once: Take what is there as complete, except files that are held locked.
        clock: The time in µs since the epoch.
        monotonic: A monotonic time in seconds.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        places: Sequence[Place],
        limits: Limits,
        *,
        slack: int | None,
        once: bool,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self._folders = folders
        self._limits = limits
        self._slack = slack
        self._once = once
        self._clock = clock
        self._monotonic = monotonic
        self._files: dict[tuple[int, int], SpoolFile] = {}
        self._resting = {(p.device, p.inode): p for p in places}  # places of files that are not there
        self._gone: list[Place] = []  # found to be gone since the last commit
        self._forgotten: list[Place] = []
        self._notices: list[str] = []
        self._troubles: dict[Path, str] = {}
        self._links: set[str] = set()  # told of
        self._turn = 0
        self._order: Iterator[Delivery] | None = None

    def scan(self) -> None:
        """Look through the folders: new, grown, renamed and vanished files."""
        now_s = self._monotonic()
        there: set[tuple[int, int]] = set()
        for folder in self._folders:
            for path, stat in self._listed(folder):
                key = (stat.st_dev, stat.st_ino)
                if key in there:
                    continue  # a second link to the same file
                there.add(key)
                file = self._files.get(key)
                if file is None:
                    file = SpoolFile(path, stat, self._place(key, path), self._limits, now_s)
                    self._files[key] = file
                    file.place.gone_us = None
                file.saw(path, stat, now_s)
        for key in self._files.keys() - there:
            self._lost(key)
        for place in self._resting.values():
            if place.gone_us is None:
                self._rest(place)

    def _listed(self, folder: Path) -> Iterator[tuple[str, os.stat_result]]:
        try:
            with os.scandir(folder) as entries:
                found = sorted((e for e in entries if is_event_file(e.name)), key=lambda e: e.name)
            self._troubles.pop(folder, None)
        except OSError as e:
            told = f"{folder}: cannot be looked through: {e.strerror or e}"
            if self._troubles.get(folder) != told:
                self._notices.append(told)
            self._troubles[folder] = told
            return
        for entry in found:
            if entry.is_symlink():
                # Whoever may write here must not have the files read that only this process may read.
                if entry.path not in self._links:
                    self._links.add(entry.path)
                    self._notices.append(
                        f"{entry.name}: is a symbolic link, which is not read; put the file itself here"
                    )
                continue
            try:
                stat = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone again
            if modes.S_ISREG(stat.st_mode):
                yield entry.path, stat

    def _place(self, key: tuple[int, int], path: str) -> Place:
        place = self._resting.pop(key, None)
        if place is not None:
            return place
        # A file of the same name that has vanished: moved to another disk, or copied in once more? Its first and
        # last bytes will tell when it is read.
        name = os.path.basename(path)
        for old, resting in self._resting.items():
            if os.path.basename(resting.path) == name and not os.path.lexists(resting.path):
                place = self._resting.pop(old)
                place.device, place.inode = key
                return place
        return Place(None, path, *key)

    def _lost(self, key: tuple[int, int]) -> None:
        file = self._files[key]
        if not file.vanished:
            file.vanished = True
            file.close()
            if file.size > file.place.offset and file.name.endswith(".jsonl"):
                self._notices.append(f"{file.name}: gone with {file.size - file.place.offset} bytes not yet handled")
        if not file.buffer and not file.dirty:
            del self._files[key]
            self._resting[key] = file.place
            self._rest(file.place)

    def _rest(self, place: Place) -> None:
        place.gone_us = self._clock()
        self._gone.append(place)

    def fill(self) -> bool:
        """Read ahead in the files that have something new; tell whether there is anything to take."""
        now_s = self._monotonic()
        latest = self._clock() + self._limits.ahead_us
        wanting = [f for f in self._files.values() if f.wants_reading(now_s)]
        total = sum(f.buffered for f in self._files.values())
        if wanting:
            size = max(8 * 1024, min(self._limits.chunk_bytes, self._limits.buffer_bytes // len(wanting)))
            self._turn = (self._turn + 1) % len(wanting)
            for file in wanting[self._turn :] + wanting[: self._turn]:
                if total >= self._limits.buffer_bytes:
                    break
                file.fill(size, latest, now_s, once=self._once)
                total += file.buffered
                self._notices += file.notices
                file.notices.clear()
        return any(f.buffer for f in self._files.values())

    def take(self) -> Iterator[Delivery]:
        """Hand out the messages that were read ahead. May be left off and called again: it goes on with the next."""
        if self._order is None:
            self._order = merged(lambda: list(self._files.values()), self._slack)
        # No `yield from`: to leave that off would end the order as well.
        for delivery in self._order:  # noqa: UP028
            yield delivery
        self._order = None

    @property
    def behind(self) -> bool:
        """Whether there is anything that could be read now."""
        now_s = self._monotonic()
        return any(f.buffer or f.wants_reading(now_s) for f in self._files.values())

    def jobs_behind(self) -> set[str]:
        """Return the jobs of which more events are known to be at hand."""
        now_s = self._monotonic()
        jobs = {m.job for f in self._files.values() for m in f.buffer}
        jobs |= {f.last_job for f in self._files.values() if f.last_job is not None and f.wants_reading(now_s)}
        return {job for job in jobs if job is not None}

    def front(self) -> int | None:
        """Return the time (µs) at which the earliest events begin that are at hand and unread, whosever they are.

        None where all is read; 0 where nobody knows yet.
        """
        now_s = self._monotonic()
        return min((f.front for f in self._files.values() if f.buffer or f.wants_reading(now_s)), default=None)

    @property
    def count(self) -> int:
        """How many files are there."""
        return sum(not f.vanished for f in self._files.values())

    @property
    def bytes_behind(self) -> int:
        """How many bytes of plain files have not been handled yet."""
        return sum(max(0, f.size - f.place.offset) for f in self._files.values() if f.name.endswith(".jsonl"))

    def notices(self) -> list[str]:
        """Return what should be told since the last call."""
        told, self._notices = self._notices, []
        return told

    def moved(self) -> list[Place]:
        """Return the places that have to be committed."""
        return [f.place for f in self._files.values() if f.dirty] + [p for p in self._gone if p.id is not None]

    def committed(self) -> None:
        """Take note that all places are safe."""
        self._gone.clear()
        for file in self._files.values():
            file.committed()

    def sweep(self) -> list[str]:
        """Remove the SDK's files that are handled, safe and left by their writer; return their names."""
        now_s = self._monotonic()
        removed: list[str] = []
        for key, file in list(self._files.items()):
            if file.remove_if_done(now_s):
                removed.append(file.name)
                file.close()
                self._forgotten.append(file.place)
                del self._files[key]
        return removed

    def to_forget(self) -> list[Place]:
        """Return the places of removed files, and of those that have been gone for long; the caller forgets them."""
        limit = self._clock() - self._limits.forget_us
        for key, place in list(self._resting.items()):
            if place.gone_us is not None and place.gone_us < limit:
                self._forgotten.append(self._resting.pop(key))
        told, self._forgotten = self._forgotten, []
        return told

    def close(self) -> None:
        """Let go of all files."""
        for file in self._files.values():
            file.close()
