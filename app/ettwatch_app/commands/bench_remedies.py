"""`ettwatch bench-remedies`: the remedies, each alone and all together, measured on this machine."""

import dataclasses
import importlib.util
import tempfile
from pathlib import Path

import click

from ettwatch_app.commands._shared import SOME_REJECTED, Refused, ends_cleanly

_MINUTES = 45.0
_QUICK_MINUTES = 10.0


@click.command("bench-remedies")
@click.option("--quick", is_flag=True, help="About 10 minutes: one round, fewer steps.")
@click.option(
    "--slowness",
    "slowness_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file of what is slower in a fleet than here, with reasons.  [default: the one of the package]",
)
@click.option("--repeats", type=click.IntRange(1, 20), help="Runs of each variant.  [default: 3, with --quick 1]")
@click.option("--only", "names", multiple=True, help="Only this variant; may be repeated.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0),
    help="Leave out later runs that would end after.  [default: 45, --quick: 10]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("remedies"),
    show_default=True,
    help="Folder for remedies.json, remedies.md and the pictures.",
)
@click.option("--go-on", is_flag=True, help="Keep the runs that --out has, and make those that are missing.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Another setting of the reference trainer.")
@click.pass_context
@ends_cleanly
def bench_remedies(
    ctx: click.Context,
    quick: bool,
    slowness_file: Path | None,
    repeats: int | None,
    names: tuple[str, ...],
    minutes: float | None,
    out: Path,
    go_on: bool,
    changes: tuple[str, ...],
) -> None:
    """Measure what each remedy gives back.

    Runs the reference trainer without any remedy, with each alone, and with all, interleaved. In each run two ranks
    start cold, train, one is killed, the job recovers and publishes. Every figure comes from the events of the runs,
    by the rules of ettwatch. Needs torch, and a machine that does nothing else.

    Exit codes: 0 done; 1 some runs failed; 2 nothing done.
    """
    if importlib.util.find_spec("torch") is None:
        raise Refused("the bench trains with PyTorch, which is not installed: pip install 'ettwatch[trainer]'")
    from ettwatch_app.demo.children import ended_in_order
    from ettwatch_app.remedies import Bench, Kept, NotKept, rounds, variants, workload
    from ettwatch_trainer.reference import SlownessError, committed_slowness, no_slowness, read_slowness

    wanted = variants()
    known = [variant.name for variant in wanted]
    if unknown := sorted(set(names) - set(known)):
        raise Refused(f"--only: there is no {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [variant for variant in wanted if not names or variant.name in names]
    try:
        slow = read_slowness(slowness_file) if slowness_file else committed_slowness()
    except SlownessError as error:
        raise Refused(str(error)) from None
    base = dataclasses.replace(workload(quick), **_settings(changes))  # type: ignore[arg-type]
    count = repeats or (1 if quick else 3)
    planned = rounds(slow, no_slowness(), chosen, count, quick=quick)
    budget = minutes if minutes is not None else (_QUICK_MINUTES if quick else _MINUTES)
    kept = Kept(out, base, wanted, count)
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="ettwatch-remedies-") as folder:
        bench = Bench(base, kept, Path(folder), budget * 60, lambda line: click.echo(line, err=True))
        try:
            if go_on:
                click.echo(f"{kept.read((slow, no_slowness()))} runs were there", err=True)
            whole = bench.go(planned)
        except NotKept as error:
            raise Refused(f"--go-on: {error}; give another --out, or leave --go-on out") from None
        except OSError as error:
            raise Refused(f"cannot write the results: {error}") from None
    click.echo(kept.text(), nl=False)
    if not kept.any:
        raise Refused("no run succeeded")
    if not whole:
        ctx.exit(SOME_REJECTED)


def _settings(changes: tuple[str, ...]) -> dict[str, object]:
    from ettwatch_trainer.reference.config import settings

    kinds, found = settings(), {}
    for change in changes:
        name, given, value = change.partition("=")
        kind = kinds.get(name, (None, None))[0]
        if not given or kind is None:
            raise Refused(f"--set {change}: give NAME=VALUE, with a setting of the reference trainer")
        try:
            found[name] = value.lower() in ("1", "true", "yes") if kind is bool else kind(value)
        except ValueError:
            raise Refused(f"--set {change}: {value!r} is no {kind.__name__}") from None
    return found
