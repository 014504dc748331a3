"""Puts the hooks in place, each when what it takes hold of has been imported."""

import os
import sys
from collections.abc import Callable
from time import monotonic_ns
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ettwatch.auto.imports import Imports
from ettwatch.auto.switches import wanted
from ettwatch.log import warn
from ettwatch.settings import flag

if TYPE_CHECKING:
    from ettwatch.auto.session import Session

_installed = False


def install() -> None:
    """Instrument this process, once. Without torch in it, nothing more than a look at each import happens."""
    global _installed
    if _installed or flag(os.environ, "ETTWATCH_DISABLED"):
        return
    _installed = True
    began_ns = monotonic_ns()
    imports = Imports()
    by_itself = not flag(os.environ, "ETTWATCH_AUTO") and not flag(os.environ, "ETTWATCH_LAUNCHER")
    if "torch" in sys.modules or by_itself:
        session = _hook(imports, began_ns)
        from ettwatch.auto.wrapping import rebind

        rebind()
        processes: Any = sys.modules.get("multiprocessing.process")
        if by_itself and (processes is None or processes.parent_process() is None):
            # Somebody wrote it into a trainer, and nobody else tells when that begins.
            session.evidence()
    else:

        def coming() -> None:
            _hook(imports, began_ns)

        # Not before torch itself is on its way: of most processes nothing is wanted.
        imports.before_import("torch", coming)


def _hook(imports: Imports, began_ns: int) -> "Session":
    from ettwatch.auto import hooks, saving
    from ettwatch.auto.feeds import Feeds
    from ettwatch.auto.session import Session
    from ettwatch.auto.steps import Steps

    session = Session(began_ns)
    steps = Steps(session)
    feeds = Feeds(session, steps, _grad_enabled)
    on = wanted(os.environ)

    def each(name: str, module: str, hook: Callable[[ModuleType], Any]) -> None:
        if name in on:
            imports.when_imported(module, lambda found: _guarded(name, hook, found))

    each("save", "torch.serialization", lambda module: saving.hook_save(session, module))
    each("load", "torch.serialization", lambda module: saving.hook_load(session, module))
    each("group", "torch.distributed.distributed_c10d", lambda module: hooks.hook_group(session, module))
    each("loader", "torch.utils.data.dataloader", lambda module: hooks.hook_loader(session, feeds, module))
    each("optimizer", "torch", lambda module: hooks.hook_optimizer(session, steps, feeds, module))
    each("compile", "torch._dynamo", lambda module: hooks.Compilations(session, module))
    dcp = "torch.distributed.checkpoint.state_dict_"
    each("dcp", f"{dcp}saver", lambda module: saving.hook_dcp_save(session, module))
    each("dcp", f"{dcp}loader", lambda module: saving.hook_dcp_load(session, module))

    imports.when_imported("torch", lambda module: session.torch_complete())
    return session


def _guarded(name: str, hook: Callable[[ModuleType], Any], module: ModuleType) -> None:
    try:
        hook(module)
    except Exception as error:
        version = getattr(sys.modules.get("torch"), "__version__", "unknown")
        warn(f"auto:{name}", f"the hook `{name}` is off with torch {version}: {type(error).__name__}: {error}")


def _grad_enabled() -> bool:
    torch: Any = sys.modules["torch"]
    return bool(torch.is_grad_enabled())
