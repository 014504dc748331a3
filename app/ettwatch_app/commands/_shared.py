"""What all commands share: exit codes, clean ends, common options."""

import errno
import functools
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import click

from ettwatch_app.owners import find_owners
from ettwatch_core.ownership import Owners, OwnersError

DONE = 0
SOME_REJECTED = 1
NOTHING_DONE = 2
INTERRUPTED = 130
READER_GONE = 141

_OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What the system says of a standard output that takes no more."""

P = ParamSpec("P")
R = TypeVar("R")
Command = Callable[..., Any]


class Refused(click.ClickException):
    """Nothing could be done. The message says what was wrong and what to do; the exit code is 2."""

    exit_code = NOTHING_DONE


def ends_cleanly(command: Callable[P, R]) -> Callable[P, R]:
    """Make Ctrl-C exit with 130 and a reader that went away (`| head`) with 141, both without a traceback.

    Raises Refused where standard output is closed or full.
    """

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        if sys.stdout is None:
            raise Refused("standard output is closed; send it to a file, a pipe or a terminal")
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a name must not end the command.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            try:
                result = command(*args, **kwargs)
            finally:
                # Also where the command leaves with an exit code: what fails later is told by nobody.
                sys.stdout.flush()
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            # The interpreter flushes standard output once more at its end, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(READER_GONE) from None
        except OSError as error:
            if error.filename is not None or error.errno not in _OUTPUT_FAILS:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Refused(
                f"cannot write the output: {error.strerror or error}; send it to where there is room"
            ) from None
        return result

    return guarded


@contextmanager
def opened_input(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for `-`. Raises OSError, also where standard input is closed."""
    if name == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed; give it a file or a pipe", name)
        yield sys.stdin.buffer
        return
    with open(name, "rb") as file:
        yield file


def seldom() -> None:
    """Have Python look for cyclic garbage seldom, as a process needs it that holds millions of small tuples."""
    gc.set_threshold(100_000, 50, 50)


def data_option(command: Command) -> Command:
    """Add `--data DIR`."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        help="The data folder.  [default: $ETTWATCH_DATA, else ./.ettwatch]",
    )(command)


def clickhouse_option(command: Command) -> Command:
    """Add `--clickhouse URL`, for those who ask a server and not a data folder."""
    return click.option(
        "--clickhouse",
        "url",
        metavar="URL",
        help="Ask this ClickHouse server, http[s]://user@host:8123/database, and not the data folder. The password and "
        "the certificates come from ETTWATCH_CLICKHOUSE_PASSWORD, _PASSWORD_FILE and _CA.",
    )(command)


def format_option(*choices: str) -> Callable[[Command], Command]:
    """Add `--format`; the first of `choices` is the default."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="How to write the result.",
    )


def definition_option(command: Command) -> Command:
    """Add `--definition`."""
    return click.option(
        "--definition",
        type=click.Choice(["ett", "goodput"]),
        default="ett",
        show_default=True,
        help="Whose definition: ETT%, or Google's goodput of the same timeline.",
    )(command)


def owners_for(own: Path) -> Owners:
    """Read the ownership file. Raises Refused where it is wrong."""
    try:
        return find_owners(own)
    except OwnersError as error:
        raise Refused(f"the ownership file is wrong:\n{error}") from None
    except OSError as error:
        raise Refused(
            f"cannot read the ownership file {error.filename}: {error.strerror}; correct ETTWATCH_OWNERS"
        ) from None
