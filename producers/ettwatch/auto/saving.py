"""The hooks into saving and loading checkpoints: `torch.save`, `torch.load`, `torch.distributed.checkpoint`."""

import os
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

from ettwatch.auto.resume import leave_saved
from ettwatch.auto.session import Session
from ettwatch.auto.wrapping import After, argument, public, replace, spanned
from ettwatch.checkpoint import Saved
from ettwatch.spans import Span

_LOOKED_AT: Final = 256
"""Values of an object that are looked at before it is said to hold no weights."""


def hook_save(session: Session, module: ModuleType) -> None:
    """`torch.save` of what holds weights is the saving of a checkpoint."""
    save = public(module, "save", "obj", "f")

    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        return _save_phase(session) if holds_weights(argument(save, "obj", args, kwargs)) else None

    def after(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, started_ts: int) -> None:
        target = argument(save, "f", args, kwargs)
        size = None
        if isinstance(target, (str, os.PathLike)):
            with suppress(OSError):
                size = os.path.getsize(target)
        # What goes into an open file or a buffer is somebody else's to make durable, and he does not say when.
        _is_safe(session, started_ts, size, durable=size is not None)

    replace(module, "save", save, spanned(session, save, before, after))


def hook_load(session: Session, module: ModuleType) -> None:
    """`torch.load` before the loop is the loading of a checkpoint."""
    load = public(module, "load", "f")
    replace(module, "load", load, spanned(session, load, _loads(session)))


def hook_dcp_load(session: Session, module: ModuleType) -> None:
    """`torch.distributed.checkpoint.load`."""
    load = public(module, "load", "state_dict", "checkpoint_id")
    replace(module, "load", load, spanned(session, load, _loads(session)))


def hook_dcp_save(session: Session, module: ModuleType) -> None:
    """`torch.distributed.checkpoint.save` and `async_save`: of the latter, what blocks and when it is durable."""
    save = public(module, "save", "state_dict", "checkpoint_id")
    async_save = public(module, "async_save", "state_dict", "checkpoint_id")

    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        session.evidence()
        return _save_phase(session)

    def after(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, started_ts: int) -> None:
        _is_safe(session, started_ts, None)

    replace(module, "save", save, spanned(session, save, before, after))
    replace(module, "async_save", async_save, spanned(session, async_save, before, _when_uploaded(session)))


def _when_uploaded(session: Session) -> After:
    def after(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, started_ts: int) -> None:
        future = getattr(result, "upload_completion", result)
        upload = session.span("wasted_training.checkpoint_upload", background=True)
        recorder = session.driven
        mark = recorder._loop.mark if recorder is not None else (0, 0, 0)

        def done(finished: Any) -> None:
            error = finished.exception()
            if isinstance(upload, Span):
                upload.end(error)
            if error is None:
                _is_safe(session, started_ts, None, mark)

        future.add_done_callback(done)

    return after


def _loads(session: Session) -> Any:
    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        session.loaded = True
        loop = session.loop
        # In the loop it may be data. Before it anything else than a checkpoint is start-up all the same.
        return None if loop is not None and loop.reported is not None else "trainer_init.checkpoint_load"

    return before


def _save_phase(session: Session) -> str:
    loop = session.loop
    if loop is None or loop.reported is None:
        return "trainer_init.checkpoint_save"
    return "shutdown.final_checkpoint" if loop.over else "wasted_training.checkpoint_save"


def _is_safe(
    session: Session,
    started_ts: int,
    size: int | None,
    mark: tuple[int, int, int] | None = None,
    durable: bool = True,
) -> None:
    """Tell that what was saved at `mark` can be loaded; where the trainer speaks for the loop, that is his to tell."""
    recorder = session.driven
    if recorder is None:
        return
    position, step, _ = mark or recorder._loop.mark
    if durable:
        recorder._saved(Saved(position, step, size, started_ts), False)
    leave_saved(recorder._identity, step)


def holds_weights(value: Any) -> bool:
    """Tell whether an object is, or holds not too deep inside, a tensor or a module."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return False
    kinds = (torch.Tensor, torch.nn.Module)
    left = [value]
    for _ in range(_LOOKED_AT):
        if not left:
            return False
        item = left.pop()
        if isinstance(item, kinds):
            return True
        if isinstance(item, dict):
            left.extend(list(item.values())[:_LOOKED_AT])
        elif isinstance(item, (list, tuple)):
            left.extend(item[:_LOOKED_AT])
    return False
