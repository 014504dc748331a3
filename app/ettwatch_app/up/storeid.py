"""A mark in the folder of the embedded engine, by which the state file knows the store that it belongs to."""

import os
import secrets
from pathlib import Path
from typing import Final

NAME: Final = "ettwatch-store-id"


def store_id(folder: Path) -> str:
    """Return the id of the store in a folder; it gets one if it has none. It goes with the folder when that is deleted.

    Raises:
        OSError: It cannot be read or written.
    """
    path = folder / NAME
    try:
        found = path.read_text().strip()
    except FileNotFoundError:
        found = ""
    if found:
        return found
    made = secrets.token_hex(16)
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    with draft.open("w") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return made
