"""The data folder, the spool folders and the `up` that lives there."""

import http.client
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import time
from urllib.parse import urlsplit

from ettwatch_app.datafolder import DataFolder, UpInfo, living_up
from ettwatch_app.doctor.finding import Finding
from ettwatch_app.render import write_advice
from ettwatch_app.up.statefile import StateFileError, look

_MB = 1 << 20
_LITTLE = 1024 * _MB
_TOO_LITTLE = 100 * _MB
_SPOOLED = (".jsonl", ".jsonl.gz", ".jsonl.zst")


def check_data(folder: DataFolder) -> Iterator[Finding]:
    """Whether the data folder is there, can be written to, and has room."""
    root = folder.root
    if not root.exists():
        yield Finding("data folder", "ok", f"{root} does not exist yet; `ettwatch up` or `ettwatch demo` makes it")
    elif not root.is_dir():
        yield Finding("data folder", "fail", f"{root} is no folder", "name a folder with --data or ETTWATCH_DATA")
        return
    else:
        yield _writable("data folder", root)
    yield from _room(root)
    yield from _kept(folder)


def _kept(folder: DataFolder) -> Iterator[Finding]:
    """What the state file of `up` tells, and the dead letters beside it."""
    codes = ""
    try:
        kept = look(folder.state)
    except StateFileError as error:
        yield Finding("data folder", "fail", str(error), "move it away; `ettwatch up` makes it anew from the events")
        kept = None
    if kept is not None:
        jobs = ", ".join(f"{number:,} {status}" for status, number in kept.jobs.items())
        yield Finding("data folder", "ok", f"state of jobs: {jobs or 'none'}")
        codes = ", ".join(f"{code} {number:,}" for code, (number, _) in kept.rejects.items())
    waiting = _lines(folder.rejected) if folder.rejected.is_file() else 0
    if waiting:
        yield Finding(
            "data folder",
            "warn",
            f"{waiting:,} refused lines or events wait to be looked at" + (f" (all so far: {codes})" if codes else ""),
            f"read {folder.rejected} for the reasons; remove it when you are done",
        )


def check_up(folder: DataFolder) -> Iterator[Finding]:
    """Whether an `up` lives in the data folder and answers."""
    info = living_up(folder)
    if info is None:
        yield Finding("up", "ok", "no `ettwatch up` lives here; report and sql open the folder themselves")
    elif info.url is None:
        yield Finding("up", "ok", f"`ettwatch up` lives (process {info.pid}) and serves no HTTP")
    elif _answers(info):
        yield Finding("up", "ok", f"`ettwatch up` lives (process {info.pid}) and answers at {info.url}")
    else:
        yield Finding(
            "up",
            "fail",
            f"`ettwatch up` lives (process {info.pid}) but does not answer at {info.url}",
            "look at its log; stop it and start it again",
        )


def check_spools(folders: tuple[Path, ...], *, followed: bool) -> Iterator[Finding]:
    """Whether the spool folders can be written to, and how much waits there."""
    for spool in folders:
        if not spool.exists():
            yield Finding("spool", "ok", f"{spool} does not exist yet; the recorder makes it")
            continue
        if not spool.is_dir():
            yield Finding("spool", "fail", f"{spool} is no folder", "name a folder with ETTWATCH_SPOOL")
            continue
        written = _writable("spool", spool)
        if written.level != "ok":
            yield written
            continue
        waiting = [path.stat() for path in spool.iterdir() if path.name.endswith(_SPOOLED) and path.is_file()]
        size = sum(info.st_size for info in waiting)
        if not waiting:
            yield Finding("spool", "ok", f"{spool}: nothing waits")
        elif followed:
            yield Finding(
                "spool", "ok", f"{spool}: {_files(len(waiting))} with {_size(size)}, followed by `ettwatch up`"
            )
        else:
            hours = (time() - min(info.st_mtime for info in waiting)) / 3600
            yield Finding(
                "spool",
                "warn",
                f"{spool}: {_files(len(waiting))} with {_size(size)} and nobody reads; the oldest for {hours:.1f} h",
                "start `ettwatch up`, or `ettwatch up --once` to read what is there",
            )


def _writable(area: str, folder: Path) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor."):
            return Finding(area, "ok", f"{folder} can be written to")
    except OSError as error:
        return Finding(
            area,
            "fail",
            f"cannot write to {folder}: {error.strerror or error}",
            write_advice(error),
        )


def _room(root: Path) -> Iterator[Finding]:
    there = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < _LITTLE:
        yield Finding(
            "data folder",
            "fail" if free < _TOO_LITTLE else "warn",
            f"only {_size(free)} are free on the disk of {root}",
            "make room, or name a folder on another disk",
        )


def _answers(info: UpInfo) -> bool:
    parts = urlsplit(info.url or "")
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=3)
    try:
        connection.request("GET", "/ping")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(_MB), b""))


def _files(number: int) -> str:
    return f"{number:,} file" + ("" if number == 1 else "s")


def _size(number: int) -> str:
    return f"{number / _MB:,.1f} MB" if number < _LITTLE else f"{number / _LITTLE:,.1f} GB"
