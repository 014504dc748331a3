"""The hooks into PyTorch: what each takes hold of, and what it makes of it. Nothing here imports torch."""

import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from types import ModuleType
from typing import Any

from ettwatch.auto.feeds import Feeds, Watched
from ettwatch.auto.session import Session
from ettwatch.auto.steps import Steps
from ettwatch.auto.wrapping import Changed, argument, public, replace, spanned
from ettwatch.log import trouble
from ettwatch.past import tell_past
from ettwatch.spans import Span


def hook_group(session: Session, module: ModuleType) -> None:
    """`torch.distributed.init_process_group` and its opposite are phases; who joins a group is a rank."""
    join, leave = public(module, "init_process_group", "rank"), public(module, "destroy_process_group")

    def joins(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        rank = argument(join, "rank", args, kwargs)
        # -1 is torch's own "not given". Of ranks that a process forked itself, only this tells one from another.
        session.evidence(joins=True, rank=rank if isinstance(rank, int) and rank >= 0 else None)
        return "trainer_init.process_group_init"

    def leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return "shutdown.teardown"

    replace(module, "init_process_group", join, spanned(session, join, joins))
    replace(module, "destroy_process_group", leave, spanned(session, leave, leaves))


def hook_optimizer(session: Session, steps: Steps, feeds: Feeds, torch: ModuleType) -> None:
    """Each step of an optimizer, by PyTorch's own hook for all of them."""
    # Not as an attribute of torch.optim, which hides its module of this name.
    register = public(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook", "hook")
    is_compiling = public(torch.compiler, "is_dynamo_compiling")

    def stepped(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # A step that is compiled itself traces this function: what it finds here then is nothing.
        if not is_compiling():
            steps.stepped(optimizer)
            feeds.stepped()

    register(stepped)


def hook_loader(session: Session, feeds: Feeds, module: ModuleType) -> None:
    """Iterators of `torch.utils.data.DataLoader`: the first batch, waits, evaluations."""
    loader = getattr(module, "DataLoader", None)
    if loader is None:
        raise Changed("torch.utils.data.DataLoader is not there")
    iterate = public(loader, "__iter__")
    main = threading.main_thread()

    def is_main() -> bool:
        return threading.current_thread() is main

    def around(self: Any) -> Any:
        since_ns = monotonic_ns()
        iterator = iterate(self)
        try:
            if is_main() and session.evidence() is not None:
                feed = feeds.of(self)
                feeds.opened(feed, since_ns)
                return Watched(iterator, feeds, feed, is_main)
        except Exception as error:
            trouble("watching a data loader", error)
        return iterator

    replace(loader, "__iter__", iterate, around)


class Compilations:
    """Each compilation by torch.compile is a phase: of a forward, of a backward, or a recompilation."""

    def __init__(self, session: Session, dynamo: ModuleType) -> None:
        self._session = session
        self._on_start = public(dynamo, "on_compile_start", "callback")
        self._on_end = public(dynamo, "on_compile_end", "callback")
        self._round = 0
        self._open: Span | None = None
        self._elsewhere: tuple[str, int, int] | None = None
        """A compilation in another thread: its phase, since when, and how many steps were done then."""
        reset = public(dynamo, "reset")

        def around(*args: Any, **kwargs: Any) -> Any:
            try:
                return reset(*args, **kwargs)
            finally:
                self.listen()  # a reset drops every callback

        self.listen()
        replace(dynamo, "reset", reset, around)

    def listen(self) -> None:
        """Ask to be called. What was asked for before, and may have been dropped, hears nothing from now on."""
        try:
            self._round += 1
            self._on_start(self._guarded(self._started, self._round))
            self._on_end(self._guarded(self._ended, self._round))
        except Exception as error:
            trouble("listening for compilations", error)

    def _guarded(self, call: Callable[[Any], None], number: int) -> Callable[..., None]:
        def callback(*args: Any) -> None:
            try:
                if number == self._round:
                    call(args[0] if args else None)
            except Exception as error:
                trouble("a compilation", error)

        return callback

    def _started(self, what: Any) -> None:
        self._session.evidence()
        loop = self._session.loop
        if threading.current_thread() is threading.main_thread():
            self._open = self._session.span(phase_of(what))
        elif loop is not None:
            self._elsewhere = (phase_of(what), monotonic_ns(), loop.mark[1])

    def _ended(self, what: Any) -> None:
        span, self._open = self._open, None
        elsewhere, self._elsewhere = self._elsewhere, None
        recorder, loop = self._session.recorder, self._session.loop
        if recorder is None or loop is None:
            return
        if span is not None:
            span.end()
        elif elsewhere is not None and recorder.enabled:
            # Whether training waited for it, as for a backward on a device, or went on beside it shows only now.
            phase, since_ns, steps = elsewhere
            tell_past(recorder, phase, since_ns, monotonic_ns(), background=loop.mark[1] > steps)
        else:
            return
        if not loop.open:
            self._session.compiled_ns = monotonic_ns()


def phase_of(what: Any) -> str:
    """Return the phase of a compilation, from what a callback is told: a trigger, and an id such as `0/1`."""
    number = str(getattr(what, "compile_id", "")).rpartition("/")[2]
    if number not in ("", "0", "None"):
        return "pt2_compilation.recompile"
    trigger = getattr(getattr(what, "callback_trigger", None), "name", "")
    return "pt2_compilation.backward" if trigger == "LAZY_BACKWARD" else "pt2_compilation.forward"
