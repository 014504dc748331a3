"""The files of a command line: those named, and those in the folders named, in one order on every machine."""

import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_SKIPPED: Final = frozenset({".git", "__pycache__", ".imports"})


class Found(NamedTuple):
    """A file, or a place that cannot be read."""

    path: str
    stat: os.stat_result | None
    """None where it cannot be read; `why` says why."""
    why: str = ""


def walk(names: Sequence[str]) -> Iterator[Found]:
    """Yield every file; `-` is standard input. Hidden folders of tools are left out, links are followed once."""
    seen: set[tuple[int, int]] = set()
    for name in names:
        if name == "-":
            yield Found("-", None)
            continue
        try:
            stat = os.stat(name)
        except (OSError, ValueError) as error:
            yield Found(name, None, _why(error))
            continue
        if os.path.isdir(name):
            yield from _folder(name, seen)
        elif _new(stat, seen):
            yield Found(name, stat)


def _folder(name: str, seen: set[tuple[int, int]]) -> Iterator[Found]:
    troubles: list[OSError] = []
    for folder, folders, files in os.walk(name, onerror=troubles.append):
        folders[:] = sorted(inner for inner in folders if inner not in _SKIPPED)
        for trouble in troubles:
            yield Found(str(trouble.filename), None, _why(trouble))
        troubles.clear()
        for file in sorted(files):
            path = os.path.join(folder, file)
            try:
                stat = os.stat(path)
            except OSError as error:
                yield Found(path, None, _why(error))
                continue
            if not os.path.isfile(path):
                yield Found(path, None, "it is no regular file")
            elif _new(stat, seen):
                yield Found(path, stat)
    for trouble in troubles:
        yield Found(str(trouble.filename), None, _why(trouble))


def _new(stat: os.stat_result, seen: set[tuple[int, int]]) -> bool:
    key = (stat.st_dev, stat.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
