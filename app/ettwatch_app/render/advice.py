"""What to do when the system refuses to write."""

import errno
from typing import Final

_ADVICE: Final = {
    errno.ENOSPC: "make room on that disk, or name a folder on another one",
    errno.EDQUOT: "make room within this user's quota, or name a folder on another disk",
    errno.EROFS: "the disk is mounted read-only: name a folder on another one",
    errno.EISDIR: "a folder stands where a file should be: move it away, or name another folder",
    errno.ENOTDIR: "a file stands where a folder should be: move it away, or name another folder",
    errno.EEXIST: "a file stands where a folder should be: move it away, or name another folder",
    errno.EACCES: "give this user the right to write there, or name another folder",
    errno.EPERM: "give this user the right to write there, or name another folder",
}


def write_advice(error: OSError) -> str:
    """Return what to do about an error of writing to a folder."""
    return _ADVICE.get(error.errno or 0, "look at that disk, or name another folder")
