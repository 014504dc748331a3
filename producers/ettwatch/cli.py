"""The command `ettwatch`: a light door. It lists commands without importing them and imports the one that is called."""

import sys

INTERRUPTED = 130

try:
    import errno
    import os
    import re
    from functools import cached_property
    from typing import Any, Final, NoReturn

    import click
except KeyboardInterrupt:  # Ctrl-C while Python imports: there is nothing to tell but that
    sys.stderr.write("interrupted\n")
    sys.exit(INTERRUPTED)

GROUP: Final = "ettwatch.commands"
"""Entry points of this group are commands."""

_OUTPUT_FAILS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What the system says of a standard output that takes no more."""

_SUMMARIES: Final = {
    "advise": "Say which remedy gives back how many GPU-hours, and try what-ifs.",
    "alerts": "Find what got worse in a fleet, and tell whoever it concerns.",
    "bench-remedies": "Train with each remedy on and off, and show what each gives back.",
    "demo": "Train a small model, kill it, let it recover, and show where the time went.",
    "dlq": "List, replay or drop what the workers refused.",
    "doctor": "Say what is installed, reachable and misconfigured.",
    "export": "Hand timelines to other tools: OpenTelemetry spans, CloudEvents.",
    "import": "Turn logs and traces of other tools into events.",
    "migrate": "Bring the tables of a ClickHouse server to this version.",
    "monitor": "Serve the web page and the API of a fleet.",
    "owners": "Check the ownership file, show who owns what, and bring it into ClickHouse.",
    "preempt": "Say whose GPUs to take so that the least is wasted.",
    "rebuild": "Make every derived table anew from the events.",
    "replay": "Turn event files into summaries of jobs.",
    "report": "Show where the time of a job went, and whose it is.",
    "run": "Run a command and record how each attempt of it starts and ends.",
    "simulate": "Make up the events of a fleet.",
    "sink": "Bring what the workers publish from Kafka into ClickHouse.",
    "sql": "Ask the tables a question in SQL.",
    "top": "Show the fleet in the terminal, live.",
    "topics": "Create the topics on the Kafka brokers, or check them.",
    "up": "Follow the spool folder, keep the tables up to date and serve them.",
    "watch": "Follow a scheduler and tell when jobs were submitted, started and ended, and why.",
    "windows": "Sum up the fleet over rolling windows, from what the workers publish on Kafka.",
    "worker": "Fold the events of a fleet from Kafka, and publish timelines.",
}

_EXTRAS: Final = {
    "rich": "cli",
    "yaml": "cli",
    "zstandard": "cli",
    "clickhouse_connect": "sinks",
    "chdb": "sinks",
    "faust": "streams",
    "aiokafka": "streams",
    "rocksdict": "streams",
    "prometheus_client": "streams",
    "mode": "streams",
    "torch": "trainer",
    "scipy": "monitor",
    "numpy": "monitor",
    "fastapi": "monitor",
    "uvicorn": "monitor",
    "anyio": "monitor",
    "pyarrow": "monitor",
    "urllib3": "sources",
    "opentelemetry": "otlp",
    "google": "otlp",
    "cramjam": "streams",
    "lz4": "streams",
    "crc32c": "streams",
    "fsspec": "trainer",
    "matplotlib": "plots",
}
"""Module that may be missing, to the extra that brings it."""

_NEEDS: Final = {
    **dict.fromkeys(("advise", "alerts", "monitor", "preempt", "top"), "monitor"),
    **dict.fromkeys(("rebuild", "report", "sql", "up"), "cli,sinks"),
    **dict.fromkeys(("dlq", "topics", "windows", "worker"), "cli,streams"),
    **dict.fromkeys(("migrate", "sink"), "cli,streams,server"),
    "bench-remedies": "cli,trainer",
    "demo": "cli,sinks,trainer",
}
"""Extras of the commands that need others than `cli`: who has none of them is told all at once."""


class Door(click.Group):
    """A group whose commands are found by entry point. Exit codes: 0 done, 1 done in part, 2 nothing done."""

    @cached_property
    def _entry_points(self) -> dict[str, Any]:
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group=GROUP)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, those that cannot be imported included."""
        return sorted({"run", *self._entry_points})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of this name."""
        if cmd_name == "run":
            from ettwatch.run_command import run

            return run
        point = self._entry_points.get(cmd_name)
        if point is None:
            return None
        try:
            command = point.load()
        except ModuleNotFoundError as error:
            _need(cmd_name, error)
        assert isinstance(command, click.Command), f"{point.value} is no click command"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by what is known of them without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _SUMMARIES.get(name, "")) for name in self.list_commands(ctx)])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and leave with its exit code."""
        standalone = kwargs.pop("standalone_mode", True)
        kwargs["standalone_mode"] = False
        if not standalone:
            return super().main(*args, **kwargs)
        try:
            code = super().main(*args, **kwargs)
        except click.ClickException as error:
            _suggest(error)
            error.show()
            sys.exit(2)
        except click.Abort:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:  # as in `ettwatch … | head`; what is still buffered has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        except OSError as error:  # as in `ettwatch --help > /dev/full`
            if error.filename is not None or error.errno not in _OUTPUT_FAILS:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            click.echo(f"Error: cannot write the output: {error.strerror or error}", err=True)
            sys.exit(2)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; a module that it misses is told by the extra that brings it."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            _need(ctx.invoked_subcommand or "", error)
        except KeyboardInterrupt:  # while the command is imported: what it does itself is its own concern
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)


def _need(command: str, error: ModuleNotFoundError) -> NoReturn:
    """Say what to install for a command; what is no extra's module is a fault and is raised."""
    name = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(name)
    if extra is None:
        raise error
    wanted = _NEEDS.get(command, "cli").split(",")
    # Each of them brings `cli`, or names it; `sinks` is `server` and the embedded engine.
    if extra != "cli" and extra not in wanted and not (extra == "sinks" and "server" in wanted):
        wanted.append(extra)
    click.echo(
        f"ettwatch {command}: needs {name}, which is not installed: pip install 'ettwatch[{','.join(wanted)}]'",
        err=True,
    )
    sys.exit(2)


def _suggest(error: click.ClickException) -> None:
    """Add to the message of an unknown command, of this group or of one inside it, what may have been meant."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    told = re.fullmatch(r"No such command '(.+)'\.", error.message)
    if told is None or ctx is None or not isinstance(ctx.command, click.Group):
        return
    from difflib import get_close_matches

    near = get_close_matches(told[1].lower(), ctx.command.list_commands(ctx), n=2)
    if near:
        error.message += f" Did you mean {' or '.join(map(repr, near))}?"


def _version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        import ettwatch

        click.echo(f"ettwatch {ettwatch.__version__}")
        ctx.exit()


@click.group(cls=Door, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def main() -> None:
    """Show where every second of a training job went, and whose it is."""


if __name__ == "__main__":
    main()
