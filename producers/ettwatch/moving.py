"""Word of where the loop stands, from a rank to its launcher: a heartbeat says alive, a position says moving.

One small file of the launcher's folder for each rank that speaks: `moving-<attempt>-<rank>` holds `<state> <position>
<step>`, state being `training` or `ended`.
"""

import os
from typing import NamedTuple

from ettwatch.log import trouble


class Place(NamedTuple):
    """Where the loop of one rank stood when it last said so."""

    state: str
    position: int
    step: int


def leave_place(folder: str | None, attempt: int, rank: int, place: Place) -> None:
    """Say where the loop stands. Raises nothing; without a folder nobody asks."""
    if folder is None:
        return
    path = os.path.join(folder, f"moving-{attempt}-{rank}")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            # Of one length, so that a new one covers the old one whole.
            os.write(fd, f"{place.state:<8} {place.position:>20} {place.step:>20}\n".encode())
        finally:
            os.close(fd)
    except OSError as error:
        trouble("telling the launcher where the loop stands", error)


def read_places(folder: str, attempt: int) -> dict[str, Place]:
    """Return where the loops of an attempt stand, by file name."""
    found = {}
    try:
        names = [name for name in os.listdir(folder) if name.startswith(f"moving-{attempt}-")]
    except OSError:
        return {}
    for name in names:
        try:
            with open(os.path.join(folder, name), encoding="ascii") as file:
                state, position, step = file.read().split()
            found[name] = Place(state, int(position), int(step))
        except (OSError, ValueError):
            continue
    return found
