"""`ettwatch demo`: a real job that dies and recovers, and the report of where its time went."""

import shutil
from pathlib import Path

import click

from ettwatch_app.commands._shared import SOME_REJECTED, Refused, ends_cleanly, owners_for
from ettwatch_app.datafolder import open_store
from ettwatch_app.render import stdout_console

_DEFAULT = Path(".ettwatch/demo")


@click.command()
@click.option("--lite", is_flag=True, help="Do not train: take the recorded events of such a run. Needs no torch.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=_DEFAULT,
    show_default=True,
    help="The data folder of the demo; what an earlier demo left there is removed.",
)
@click.option("--keep", is_flag=True, help="Keep the checkpoints and caches of the trainer.")
@click.pass_context
@ends_cleanly
def demo(ctx: click.Context, lite: bool, data: Path, keep: bool) -> None:
    """Train a small model, kill it, let it recover, and show where the time went.

    A recommendation model is trained for about two minutes by two ranks; one of them is killed on the way. The
    report comes from ClickHouse, with three queries to try.

    Exit codes: 0 done; 1 done, but replay and SQL do not agree; 2 nothing done.
    """
    import ettwatch_clickhouse as sink
    from ettwatch_app.demo.acts import DemoFailed, has_torch, recorded, trained
    from ettwatch_app.demo.children import ended_in_order
    from ettwatch_app.demo.folder import fresh
    from ettwatch_app.demo.show import show_result, show_way_on

    if not lite and not has_torch():
        raise Refused(
            "the demo trains with PyTorch, which is not installed: pip install 'ettwatch[trainer]'; "
            "or see the same report of a recorded run: ettwatch demo --lite"
        )
    folder = fresh(data)
    owners = owners_for(folder.owners)
    console = stdout_console()
    act = recorded if lite else trained
    try:
        with ended_in_order(), act(folder), open_store(folder, who="ettwatch demo") as store:
            agreed, job = show_result(store, folder, owners, console)
    except DemoFailed as error:
        raise Refused(str(error)) from None
    except (sink.StoreError, OSError) as error:
        raise Refused(str(error)) from None
    if not keep:
        shutil.rmtree(folder.root / "trainer", ignore_errors=True)
    show_way_on(folder, job, console)
    if not agreed:
        ctx.exit(SOME_REJECTED)
