"""`ettwatch up`: one process that follows spool folders, folds events, writes ClickHouse and serves it."""

from ettwatch_app.up.settings import SETTINGS, Limits, UpSettings
from ettwatch_app.up.statefile import Kept, StateFileError, look

__all__ = ["SETTINGS", "Kept", "Limits", "StateFileError", "UpSettings", "look", "run_up"]


def run_up(settings: UpSettings) -> int:
    """Run until told to stop, and return the exit code.

    Returns:
        0: done; 1: done, but some input was rejected; 2: something could not be written (it is read again the next
        time).

    Raises:
        FolderError: The data folder or a spool folder cannot be used, or the address is taken.
    """
    # The engine takes a third of a second to import: those who only look at settings or state do without it.
    from ettwatch_app.up.start import run_up as run

    return run(settings)
