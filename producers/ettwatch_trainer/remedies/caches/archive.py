"""One file that holds a compile cache: a line of JSON that says what is in it, then a compressed tar."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ettwatch_trainer.remedies.caches.key import CacheKey

VERSION = 1
HEAD_BYTES = 1 << 16  # the longest first line
STAGING = ".ettwatch-"  # folders that are filled and then emptied into the cache
MEGA = "megacache.bin"  # torch's own portable artifacts
_FILES = "files/"
# Locks and half-written files belong to the process that has them.
_PASSING = (".lock", ".tmp", ".part")


class ArchiveError(Exception):
    """An archive that cannot be taken. The text says why."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of an archive."""

    key: CacheKey
    payload_bytes: int
    unpacked_bytes: int
    sha256: str


def pack(folder: Path, mega: bytes | None, key: CacheKey) -> bytes:
    """Everything in inductor's cache folder, and torch's portable artifacts. Raises OSError."""
    held: list[tuple[str, bytes, int]] = [] if mega is None else [(MEGA, mega, 0o600)]
    for name in listing(folder):
        path = folder / name
        try:
            held.append((_FILES + name, path.read_bytes(), stat.S_IMODE(path.stat().st_mode) & 0o700))
        except FileNotFoundError:  # another rank has just replaced it
            continue
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=3) as tar:
        for name, data, mode in held:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    payload = packed.getvalue()
    head = {
        "ettwatch_compile_cache": VERSION,
        "key": dict(key.parts),
        "payload_bytes": len(payload),
        "unpacked_bytes": sum(len(data) for _, data, _ in held),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + payload


def listing(folder: Path) -> list[str]:
    """The files of a cache folder that are worth keeping, by their path in it."""
    found: list[str] = []
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "locks" and not name.startswith(STAGING))
        within = Path(where).relative_to(folder)
        kept = [within / name for name in sorted(files) if not name.endswith(_PASSING)]
        found += [path.as_posix() for path in kept if stat.S_ISREG((folder / path).lstat().st_mode)]
    return found


def read_head(data: bytes) -> Head:
    """Read the first line. Raises ArchiveError."""
    line, found, _ = data[:HEAD_BYTES].partition(b"\n")
    try:
        if not found:
            raise ValueError("its first line does not end")
        read = json.loads(line)
        if read["ettwatch_compile_cache"] != VERSION:
            raise ArchiveError(f"it has version {read['ettwatch_compile_cache']!r}; this program reads {VERSION}")
        parts = tuple((str(name), str(value)) for name, value in read["key"].items())
        return Head(CacheKey(parts), int(read["payload_bytes"]), int(read["unpacked_bytes"]), str(read["sha256"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArchiveError(f"it is no archive of a compile cache ({type(error).__name__}: {error})") from error


def unpack(data: bytes, key: CacheKey, folder: Path, limit: int) -> bytes | None:
    """Check an archive whole, then put its files into `folder`; return torch's portable artifacts.

    Nothing is put there before everything was checked, and nothing there is replaced: what is compiled has the name
    of its content. `limit`: bytes it may have unpacked. Raises ArchiveError, OSError.
    """
    head = read_head(data)
    if differences := key.differences(head.key):
        raise ArchiveError(f"it was made for another {'; '.join(differences)}")
    payload = memoryview(data)[data.index(b"\n") + 1 :]
    if len(payload) != head.payload_bytes:
        raise ArchiveError(f"it has {len(payload)} of {head.payload_bytes} bytes: it is not whole")
    if hashlib.sha256(payload).hexdigest() != head.sha256:
        raise ArchiveError("its bytes are not those that were saved (SHA-256)")
    if head.unpacked_bytes > limit:
        raise ArchiveError(f"it has {head.unpacked_bytes} bytes unpacked; at most {limit} are taken")
    folder.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    try:
        names, mega = _extract(io.BytesIO(payload), staging, head.unpacked_bytes)
        for name in names:
            target = folder / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(staging / name, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return mega


def _extract(payload: io.BytesIO, staging: Path, total: int) -> tuple[list[str], bytes | None]:
    names: list[str] = []
    mega = None
    left = total
    try:
        with tarfile.open(fileobj=payload, mode="r:gz") as tar:
            for member in tar:
                name = _checked(member)
                left -= member.size
                if left < 0:
                    raise ArchiveError("it holds more than it says")
                file = tar.extractfile(member)
                content = b"" if file is None else file.read()
                if name is None:
                    mega = content
                    continue
                path = staging / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                path.chmod((member.mode & 0o700) | 0o600)
                names.append(name)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ArchiveError(f"its files cannot be read ({type(error).__name__}: {error})") from error
    return names, mega


def _checked(member: tarfile.TarInfo) -> str | None:
    """The path in the cache folder that a member has, None for torch's artifacts. Raises ArchiveError."""
    if not member.isreg():
        raise ArchiveError(f"it holds {member.name!r}, which is no plain file")
    if member.name == MEGA:
        return None
    path = PurePosixPath(member.name.removeprefix(_FILES))
    odd = any(part in ("", ".", "..") or part.startswith(STAGING) or "\\" in part or ":" in part for part in path.parts)
    if not member.name.startswith(_FILES) or path.is_absolute() or not path.parts or odd or "\0" in member.name:
        raise ArchiveError(f"it holds {member.name!r}, which leads out of the cache folder")
    return path.as_posix()
