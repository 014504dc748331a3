"""A start-up laid out anew: what waited for something waits for it again, with other lengths."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ettwatch_monitor.advice.change import Knobs
from ettwatch_monitor.advice.life import Attempt, Node

COMPILATION: Final = "pt2_compilation"
CACHE_LOAD: Final = "pt2_compilation.cache_load"
_PRE_TRAIN: Final = "trainer_init.pre_train"

NEEDS: Final = {
    "trainer_init.preproc_creation": (),
    "trainer_init.train_module_creation": ("trainer_init.device_init",),
    "trainer_init.init_plugins": ("trainer_init.train_module_creation",),
    "trainer_init.checkpoint_load": ("trainer_init.device_init",),
    "trainer_init.get_first_batch_data": ("trainer_init.preproc_creation",),
    COMPILATION: ("trainer_init.train_module_creation", "trainer_init.process_group_init"),
}
"""What a stage of the trainer's start cannot begin without, where stages may overlap; of others nothing is known."""

_HANGS: Final = ("timeout", "network")
"""Causes of which a trainer does not die: it waits until somebody ends it."""
_MUCH: Final = 2
"""What was open for so many times the usual length stood still."""
_BEHIND: Final = 0.1
"""A rank is a straggler if it is later than the others by more than this share of its phase."""


class Hit(NamedTuple):
    """How a compilation goes that finds compiled code.

    Attributes:
        share: How often it does.
        stages: Stages of it, with their lengths (µs); empty: nobody has seen one.
        left: The share of a cold compilation that it takes, where nobody has seen one.
    """

    share: float
    stages: dict[str, int]
    left: float


@dataclass(slots=True)
class Laid:
    """A start-up as it would be: phases as (stage, start, end); times (µs) from the start of the attempt."""

    phases: list[tuple[str, int, int]] = field(default_factory=list)
    loop_start: int | None = None
    end: int = 0


def lay_out(
    attempt: Attempt, knobs: Knobs, *, first: bool, hit: Hit | None, slow: str | None, usual: Mapping[str, int]
) -> Laid:
    """Lay out a start-up.

    Args:
        attempt: Whose it is.
        knobs: What is other.
        first: Whether it is the first attempt.
        hit: How it would find compiled code, if it did not and would; else None.
        slow: The host that keeps the others waiting, if nobody is to wait for it.
        usual: How long stages take (µs) in attempts of its kind that trained.
    """
    return _Layout(attempt, knobs, first, hit, slow, usual).run()


class _Layout:
    def __init__(
        self,
        attempt: Attempt,
        knobs: Knobs,
        first: bool,
        hit: Hit | None,
        slow: str | None,
        usual: Mapping[str, int],
    ) -> None:
        self._usual = usual
        self._attempt = attempt
        self._startup = attempt.startup
        self._knobs = knobs
        self._first = first
        self._hit = hit
        self._slow = slow
        self._ends: list[tuple[Node, int]] = []
        """Nodes that are placed, with their new ends."""
        self._boot: int | None = None

    def run(self) -> Laid:
        startup, overlap = self._startup, self._knobs.overlap and self._startup.loop_start is not None
        laid = Laid()
        nodes = list(startup.nodes)
        if self._hit is not None and self._hit.stages.get(CACHE_LOAD):
            ends = [n.end for n in nodes if n.stage.startswith(COMPILATION)]
            if ends:
                nodes.append(Node(CACHE_LOAD, max(ends), max(ends), False, 0, 0))
        open_: list[int] = []
        late = [node for node in nodes if overlap and node.stage == _PRE_TRAIN]
        glue = list(startup.glue)
        for node in [*sorted((n for n in nodes if n not in late), key=lambda n: (n.start, n.end)), *late]:
            start = self._begin(node, overlap)
            length = self._length(node)
            if length > 0:
                if node.open:
                    open_.append(len(laid.phases))
                laid.phases.append((node.stage, start, start + length))
            self._ends.append((node, start + length))
            if self._boot is None and node.stage.startswith("trainer_init"):
                self._boot = start
            if overlap:  # what follows a compilation is part of it: nothing starts before it is over
                for piece in [g for g in glue if g[0] == COMPILATION and g[1] == node.end]:
                    glue.remove(piece)
                    took = self._scaled(*piece)
                    laid.phases.append((piece[0], start + length, start + length + took))
                    self._ends[-1] = (node, start + length + took)
        for stage, since, until in glue:
            start = self._at(since)
            took = self._scaled(stage, since, until)
            if took > 0:
                laid.phases.append((stage, start, start + took))
        if startup.loop_start is not None:
            laid.loop_start = self._at(startup.loop_start) if not overlap else self._after_all(startup.loop_start)
        laid.end = max(self._at(startup.end), laid.loop_start or 0)
        if overlap and laid.loop_start is not None:
            laid.end = laid.loop_start
        if self._attempt.loop is None and self._attempt.aged:
            self._at_its_age(laid, open_)
        return laid

    def _begin(self, node: Node, overlap: bool) -> int:
        if not overlap:
            return self._at(node.start)
        if node.stage == _PRE_TRAIN:
            return self._after_all(node.start)
        compiles = node.stage.startswith(COMPILATION)
        if compiles and any(done.stage.startswith(COMPILATION) for done, _ in self._ends):
            ends = [(done, end) for done, end in self._ends if done.stage.startswith(COMPILATION)]
            return self._from(node.start, ends)
        needs = NEEDS.get(COMPILATION if compiles else node.stage)
        if needs is None:
            return self._at(node.start)
        ends_of = [end for done, end in self._ends if done.stage in needs]
        if needs and not ends_of:
            return self._at(node.start)
        soonest = max(ends_of, default=self._boot if self._boot is not None else self._at(node.start))
        return soonest if compiles else min(soonest, self._at(node.start))

    def _at(self, time: int) -> int:
        """When it is now what it was at `time`: as much later than all that had ended before as it was."""
        return self._from(time, [(node, end) for node, end in self._ends if node.end <= time])

    def _after_all(self, time: int) -> int:
        before = max((n.end for n, _ in self._ends if n.end <= time), default=0)
        return max((end for _, end in self._ends), default=0) + self._glued(before, time)

    def _from(self, time: int, done: list[tuple[Node, int]]) -> int:
        before = max((node.end for node, _ in done if node.end <= time), default=0)
        return max((end for _, end in done), default=0) + self._glued(before, time)

    def _glued(self, since: int, until: int) -> int:
        """How long it takes now from one time to the next, between phases."""
        left = until - since
        for stage, start, end in self._startup.glue:
            inside = min(end, until) - max(start, since)
            if inside > 0:
                left += round(inside * self._knobs.factor(stage, first=self._first)) - inside
        return left

    def _scaled(self, stage: str, start: int, end: int) -> int:
        return round((end - start) * self._knobs.factor(stage, first=self._first))

    def _dead(self, node: Node) -> int:
        """How long (µs) a phase that never ended stayed open after nothing moved any more."""
        attempt, length = self._attempt, node.end - node.start
        usual = self._usual.get(node.stage, length)
        hangs = attempt.cause in _HANGS or length > _MUCH * usual
        if attempt.silent is not None and not (attempt.alive and hangs):
            return min(attempt.silent, length)
        # It stood still somewhere within the usual length, on average in the middle.
        return length - min(length, usual) // 2

    def _at_its_age(self, laid: Laid, open_: list[int]) -> None:
        """It fails at the age at which it did, with what was open then."""
        left = self._knobs.detection(self._attempt)
        dead = 0 if self._attempt.clean else max((self._dead(n) for n in self._startup.nodes if n.open), default=0)
        laid.end = self._startup.end - round(dead * (1 - left))
        laid.phases = [
            (stage, start, laid.end if i in open_ else min(end, laid.end))
            for i, (stage, start, end) in enumerate(laid.phases)
            if start < laid.end
        ]

    def _length(self, node: Node) -> int:
        length = node.end - node.start
        if node.stage == CACHE_LOAD and length == 0 and self._hit is not None:
            return round(self._hit.share * self._hit.stages[CACHE_LOAD])
        if node.open:
            left = self._knobs.detection(self._attempt) if self._attempt.failed else 1.0
            return length - round(self._dead(node) * (1 - left))
        if self._slow is not None and self._attempt.hosts.get(node.rank) == self._slow and is_late(node):
            length -= node.behind
        if self._hit is not None and node.stage.startswith(COMPILATION):
            if not self._hit.stages:
                length = round(length * (1 - self._hit.share * (1 - self._hit.left)))
            elif node.stage not in self._hit.stages:
                length = round(length * (1 - self._hit.share))
        return round(length * self._knobs.factor(node.stage, first=self._first))


def is_late(node: Node) -> bool:
    """Whether one rank of a phase kept the others waiting."""
    return node.behind > _BEHIND * (node.end - node.start)
