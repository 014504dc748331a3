"""The folder of a demo: made anew for each, and never out of anything that a demo did not make."""

import shutil
from pathlib import Path

from ettwatch_app.datafolder import DataFolder, FolderError, create, living_up

_MARK = ".made-by-ettwatch-demo"


def fresh(root: Path) -> DataFolder:
    """Make an empty folder; what an earlier demo left there is removed.

    Raises FolderError where something else is there, where an `up` lives there, or where it cannot be written to.
    """
    folder = DataFolder(root.expanduser().absolute())
    if folder.root.exists():
        if not folder.root.is_dir():
            raise FolderError(f"{folder.root} is no folder; name another one with --data")
        if any(folder.root.iterdir()) and not (folder.root / _MARK).exists():
            raise FolderError(f"{folder.root} is not empty and no demo made it; name another folder with --data")
        info = living_up(folder)
        if info is not None:
            raise FolderError(
                f"`ettwatch up` (process {info.pid}) lives in {folder.root}; "
                "stop it, or name another folder with --data"
            )
        try:
            shutil.rmtree(folder.root)
        except OSError as error:
            raise FolderError(f"cannot empty {folder.root}: {error.strerror or error}; remove it yourself") from None
    create(folder)
    (folder.root / _MARK).touch()
    folder.spool.mkdir()
    return folder
