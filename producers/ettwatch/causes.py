"""From an exception to the cause of a failed attempt. By names, so that nothing needs to be imported."""

import errno
from contextlib import suppress
from typing import Final

from ettwatch.wire import tidy_text

_BY_TYPE: Final = {
    "OutOfMemoryError": "gpu_memory",
    "MemoryError": "host_memory",
    "DistBackendError": "network",
    "DistNetworkError": "network",
    "DistStoreError": "network",
    "ConnectionError": "network",
    "TimeoutError": "timeout",
}
"""Name of an exception type, or of one that it is derived from, to cause."""

_CONNECTIONS: Final = ("BrokenPipeError", "ConnectionAbortedError", "ConnectionRefusedError", "ConnectionResetError")

_BY_TEXT: Final = (
    ("out of memory", "gpu_memory"),
    ("uncorrectable ecc", "hardware"),
    ("nvlink error", "hardware"),
    ("nccl error", "network"),
    ("connection closed by peer", "network"),
    ("connection reset by peer", "network"),
    ("timed out", "timeout"),
)
"""What a RuntimeError of torch says, in lower case, to cause: below Python all errors have one type."""

CONSEQUENCES: Final = (None, "unknown", "network", "timeout")
"""Causes that a rank reports when it was another process that died."""

_STORAGE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EROFS})


def message_of(error: BaseException) -> str:
    """Return type and text of an exception. What could be slow to print, such as a tensor, is left out."""
    name = type(error).__name__
    try:
        if not all(isinstance(arg, str | int | float | None) for arg in error.args):
            return name
        text = str(error)
    except Exception:
        text = ""
    return tidy_text(f"{name}: {text}" if text else name)


def cause_of(error: BaseException) -> str:
    """Return the cause that an exception stands for; `user_code` where nothing says otherwise."""
    names = [kind.__name__ for kind in type(error).__mro__]
    for name in names:
        if name in _BY_TYPE:
            return _BY_TYPE[name]
    with suppress(Exception):  # the type may have made a property of it
        if isinstance(error, OSError) and error.errno in _STORAGE:
            return "storage"
    return _by_text(message_of(error)) if "RuntimeError" in names else "user_code"


def cause_of_name(name: str, text: str) -> str:
    """Return the cause that an exception of another process stands for, from its type's name and its text."""
    if name in _BY_TYPE:
        return _BY_TYPE[name]
    if name in _CONNECTIONS:
        return "network"
    if name in ("KeyboardInterrupt", "SystemExit"):
        return "unknown"
    if name == "OSError" and any(f"[Errno {number}]" in text for number in _STORAGE):
        return "storage"
    return _by_text(text) if name.endswith("RuntimeError") else "user_code"


def _by_text(text: str) -> str:
    text = text.lower()
    return next((cause for part, cause in _BY_TEXT if part in text), "user_code")
