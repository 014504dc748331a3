"""`ettwatch watch`: a scheduler's side of the story, as events."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from ettwatch_app.asked import Asked
from ettwatch_app.commands._shared import SOME_REJECTED, Refused, ends_cleanly
from ettwatch_app.datafolder import locate, spools
from ettwatch_schemas.durations import parse_duration
from ettwatch_sources import Refused as RefusedEvent
from ettwatch_sources import Sink, SpoolSink, StreamSink, Told, line_of
from ettwatch_sources.kubernetes.resources import WATCHED
from ettwatch_sources.watch.cursor import Cursor, CursorError
from ettwatch_sources.watch.loop import Poller, PollError, follow

_SECOND: Final = 1_000_000
Command = Callable[..., Any]


def _duration(_: click.Context, parameter: click.Parameter, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


def _common(command: Command) -> Command:
    """Add what all watchers take."""
    for option in (
        click.option("--once", is_flag=True, help="Tell what there is now, and end."),
        click.option("--cursor", metavar="FILE", help="What was told already.  [default: .cursors/NAME.json in --out]"),
        click.option(
            "--out", metavar="DIR", help="The spool folder that events go to; - writes them to standard output."
        ),
        click.option("--cluster", help="Name of the cluster.  [default: what the scheduler says]"),
    ):
        command = option(command)
    return command


_every = click.option(
    "--every", default="30s", show_default=True, callback=_duration, metavar="DUR", help="Time between two questions."
)


@click.group()
def watch() -> None:
    """Follow a scheduler and tell when jobs were submitted, started and ended, and why.

    One process for a cluster. It only reads. Events go to the spool folder, which `ettwatch up` follows; what was told
    is kept in a cursor file, so that a watcher that is started again goes on where it was.

    Exit codes: 0 done; 1 with --once: done, some refused; 2 nothing done.
    """


@watch.command()
@_common
@_every
@click.option(
    "--since", default="1d", show_default=True, callback=_duration, metavar="DUR", help="How far to look back."
)
@click.option(
    "--via", type=click.Choice(["sacct", "scontrol"]), default="sacct", show_default=True, help="Whom to ask."
)
@click.option("--partition", multiple=True, help="Only jobs of this partition; may be repeated.")
@click.option("--steps", is_flag=True, help="Ask for steps, too: they say that a job was out of memory.")
@ends_cleanly
def slurm(
    every: int,
    since: int,
    via: str,
    partition: tuple[str, ...],
    steps: bool,
    cluster: str | None,
    out: str | None,
    cursor: str | None,
    once: bool,
) -> None:
    """Follow a Slurm cluster by its accounting (sacct), or without accounting by scontrol."""
    from ettwatch_sources.slurm.watcher import SlurmPoller

    poller = SlurmPoller(
        cluster, _now() - since, via=via, partitions=partition, steps=steps, say=lambda text: click.echo(text, err=True)
    )
    _poll(poller, "slurm", every, out, cursor, once)


@watch.command()
@_common
@_every
@click.option(
    "--address", default="http://127.0.0.1:8265", show_default=True, metavar="URL", help="Address of the dashboard."
)
@click.option("--token-file", metavar="FILE", help="File with a bearer token for the dashboard.")
@ends_cleanly
def ray(
    every: int,
    address: str,
    token_file: str | None,
    cluster: str | None,
    out: str | None,
    cursor: str | None,
    once: bool,
) -> None:
    """Follow the jobs of a Ray cluster by the API of its dashboard."""
    from ettwatch_sources.ray.watcher import RayPoller

    token = _token(token_file) if token_file else ""
    if not address.startswith(("http://", "https://")):
        raise Refused(f"{address!r} is no address; give one like http://127.0.0.1:8265")
    if "@" in address.split("/")[2]:
        raise Refused("--address must hold no user and password: they would be shown; use --token-file")
    poller = RayPoller(address, cluster, token, lambda text: click.echo(text, err=True))
    _poll(poller, "ray", every, out, cursor, once)


@watch.command()
@_common
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster.  [default: the pod's own account]")
@click.option("--context", "context_name", metavar="NAME", help="Context of the kubeconfig.  [default: the current]")
@click.option("--namespace", metavar="NAME", help="Only this namespace.  [default: all]")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(WATCHED),
    help="What to watch; may be repeated.  [default: all that the cluster has]",
)
@ends_cleanly
def kubernetes(
    kubeconfig: str | None,
    context_name: str | None,
    namespace: str | None,
    kinds: tuple[str, ...],
    cluster: str | None,
    out: str | None,
    cursor: str | None,
    once: bool,
) -> None:
    """Follow Kueue workloads, JobSets, TrainJobs, RayJobs, PyTorchJobs, Volcano and batch jobs, with their pods."""
    from ettwatch_sources.kubernetes.api import Api, Unreachable
    from ettwatch_sources.kubernetes.config import ConfigError, from_kubeconfig, in_cluster
    from ettwatch_sources.kubernetes.folder import Folder
    from ettwatch_sources.kubernetes.watcher import Watcher

    try:
        access = from_kubeconfig(kubeconfig, context_name) if kubeconfig else in_cluster()
    except ConfigError as error:
        raise Refused(str(error)) from None
    chosen = kinds or WATCHED
    folder = Folder(cluster, access.server, chosen)
    watcher = Watcher(Api(access), chosen, namespace, folder, lambda text: click.echo(text, err=True))
    sink, saved = _places("kubernetes", out, cursor)
    state = _load(saved)
    try:
        folder.load(state)
    except (TypeError, AttributeError) as error:
        raise Refused(f"{saved.path} is no cursor of this version ({error}); move it away to begin anew") from None

    refused = 0

    def hand_on(told: list[Told], save: bool) -> None:
        nonlocal refused
        for one in told:
            try:
                sink.write(line_of(one))
            except RefusedEvent as error:
                refused += 1
                click.echo(f"an event of {one.event.job!r} is refused: {error}", err=True)
        if told or save:
            sink.flush()
        if save:
            saved.save(watcher.dump())

    try:
        with _until_signal() as stop:
            threading.Thread(target=_stop_after, args=(stop, watcher.stop), daemon=True).start()
            watcher.run(_now, hand_on, once)
        hand_on([], True)
        sink.close()
    except Unreachable as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise _unwritable(error) from error
    if once and refused + folder.tracker.refused:
        raise SystemExit(SOME_REJECTED)


def _token(file: str) -> str:
    try:
        token = Path(file).read_bytes().strip()
    except OSError as error:
        raise Refused(f"cannot read {file}: {error.strerror}; name another --token-file") from None
    if not token or not all(32 < byte < 127 for byte in token):
        raise Refused(f"{file} holds no token: it should be one word; name another --token-file")
    return token.decode()


def _stop_after(stopped: threading.Event, stop: Callable[[], None]) -> None:
    stopped.wait()
    stop()


def _poll(poller: Any, name: str, every: int, out: str | None, cursor: str | None, once: bool) -> None:
    sink, saved = _places(name, out, cursor)
    state = _load(saved)
    try:
        poller.load(state)
    except (TypeError, ValueError, KeyError) as error:
        raise Refused(f"{saved.path} is no cursor of this version ({error}); move it away to begin anew") from None
    asked: Poller = poller
    try:
        with _until_signal() as stop:
            written = follow(
                asked,
                sink,
                saved,
                every_s=every / _SECOND,
                clock=_now,
                sleep=stop.wait,
                say=lambda text: click.echo(text, err=True),
                once=once,
            )
        sink.close()
    except PollError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise _unwritable(error) from error
    click.echo(f"{written:,} event{'' if written == 1 else 's'} told", err=True)
    if once and asked.refused:
        if not asked.read:
            raise Refused("nothing of what the scheduler says could be read")
        raise SystemExit(SOME_REJECTED)


def _places(name: str, out: str | None, cursor: str | None) -> tuple[Sink, Cursor]:
    folder = Path(out) if out not in {None, "-"} else spools(locate())[0]
    path = Path(cursor) if cursor else folder / ".cursors" / f"{name}.json"
    if out == "-":
        return StreamSink(click.get_binary_stream("stdout")), Cursor(path, name)
    return SpoolSink(str(folder), f"watch-{name}"), Cursor(path, name)


def _load(cursor: Cursor) -> dict[str, Any]:
    try:
        return cursor.load()
    except CursorError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot read the cursor {cursor.path}: {error.strerror}") from None


def _unwritable(error: OSError) -> Exception:
    if isinstance(error, BrokenPipeError):
        return error
    return Refused(
        f"cannot write {error.filename or 'events'}: {error.strerror or error}; give another --out or --cursor"
    )


def _now() -> int:
    return time.time_ns() // 1_000


@contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """Give an event that is set by TERM and INT: a watcher that is stopped has done what it should."""
    stop = Asked()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
