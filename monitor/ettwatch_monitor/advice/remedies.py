"""The remedies: what each changes, what that rests on, and how far it is to be trusted."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ettwatch_monitor.advice import evidence
from ettwatch_monitor.advice.change import BEST, Change
from ettwatch_monitor.advice.fleet import Fleet
from ettwatch_monitor.advice.life import Life

Confidence: TypeAlias = Literal["high", "medium", "low"]

RECOMPILES_LEFT: Final = 0.1
AUTOTUNE_LEFT: Final = 0.25
AUTOTUNE_KEPT: Final = 0.05
BLOCKING_LEFT: Final = 0.2
DETECTION_S: Final = 60.0
WARM_IMAGE: Final = 0.05
KEPT_HOSTS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that can be done.

    Attributes:
        name: Its name.
        title: What it is, in a line; see `title_of` for one with the numbers of a team.
        stage: The stage whose owner can do it.
        changes: What it changes.
        assumes: What is taken for granted.
        confidence: How far the prediction is to be trusted, where there are enough cases.
        error_pct: How far predictions were off in trials on simulated fleets, in percent; None: it could not be tried.
        why: What that rests on.
        shows: Lines with the figures behind it, of some jobs.
        counts: How often the thing happened that it cures, in some jobs.
    """

    name: str
    title: str
    stage: str
    changes: tuple[Change, ...]
    assumes: tuple[str, ...]
    confidence: Confidence
    error_pct: float | None
    why: str
    shows: Callable[[Fleet, Sequence[Life]], list[str]]
    counts: Callable[[Fleet, Iterable[Life]], int]


_SAME: Final = (
    "a failure comes at the same age of its attempt; the same work is done; waits for hardware stay as long",
)


def _on(stage: str, factor: float, attempts: Literal["all", "first", "later"] = "all") -> Change:
    return Change(stage=stage, factor=factor, attempts=attempts)


REMEDIES: Final[tuple[Remedy, ...]] = (
    Remedy(
        "publish_off_gpus",
        "Publish the model from another machine, after the GPUs are released",
        "shutdown.model_publish",
        (_on("shutdown.model_publish", 0.0),),
        ("handing the model over takes no time", *_SAME),
        "high",
        1,
        "the jobs tell how long publishing took, and nothing else waits for it",
        evidence.stage("shutdown.model_publish"),
        evidence.segments("shutdown.model_publish"),
    ),
    Remedy(
        "compile_cache",
        "Share compiled code between attempts, hosts and jobs",
        "pt2_compilation",
        (Change(cache="fleet"),),
        (
            "97 % of what was compiled before under the same key is found",
            "a warm compilation takes what it took where one was seen, else 12.4 % of a cold one",
            *_SAME,
        ),
        "high",
        5,
        "the jobs tell what they compiled and whether it was found compiled; code counts as shared from the first "
        "batch of the job that compiled it first",
        evidence.compiled_again,
        evidence.colds("fleet"),
    ),
    Remedy(
        "compile_cache_per_job",
        "Keep compiled code for the later attempts of the same job",
        "pt2_compilation",
        (Change(cache="job"),),
        (
            "97 % of what an earlier attempt of the job compiled under the same key is found",
            "part of compile_cache: the two do not add up",
            *_SAME,
        ),
        "high",
        8,
        "the jobs tell what they compiled and whether it was found compiled",
        evidence.compiled_again,
        evidence.colds("job"),
    ),
    Remedy(
        "dynamic_shapes",
        "Mark inputs that vary as dynamic, so that fewer shapes compile again while training",
        "pt2_compilation.recompile",
        (_on("pt2_compilation.recompile", RECOMPILES_LEFT),),
        ("a tenth of the recompilations stays", "a step is no slower with dynamic shapes", *_SAME),
        "high",
        10,
        "the jobs tell each recompilation; that a tenth of them stays is an assumption",
        evidence.stage("pt2_compilation.recompile"),
        evidence.segments("pt2_compilation.recompile"),
    ),
    Remedy(
        "autotune_budget",
        "Limit autotuning, and keep what it found for later attempts",
        "pt2_compilation.autotune",
        (
            _on("pt2_compilation.autotune", AUTOTUNE_LEFT, "first"),
            _on("pt2_compilation.autotune", AUTOTUNE_KEPT, "later"),
        ),
        ("a quarter of it is left in a first attempt, a twentieth in later ones", "steps stay as fast", *_SAME),
        "medium",
        10,
        "the jobs tell how long it took; how much of the search is needed is an assumption",
        evidence.stage("pt2_compilation.autotune"),
        evidence.segments("pt2_compilation.autotune"),
    ),
    Remedy(
        "async_saves",
        "Save checkpoints in the background: training waits only for the copy to host memory",
        "wasted_training.checkpoint_save",
        (Change(save_blocking=BLOCKING_LEFT),),
        ("a fifth of a save still blocks (published: -77 %)", "uploads do not slow training down", *_SAME),
        "medium",
        10,
        "nobody tells how much of a save is the copy; and it weighs much whether a failure came before or after a save",
        evidence.saves,
        evidence.blocking_saves,
    ),
    Remedy(
        "save_interval",
        "Save checkpoints at the interval that costs least",
        "wasted_training.rework",
        (Change(save_interval_s=BEST),),
        ("the MTBF of jobs of the same team, model and size stays", *_SAME),
        "medium",
        20,
        "less is lost to failures and more (or less) to saves; over few failures the difference is luck",
        evidence.interval,
        evidence.failures(()),
    ),
    Remedy(
        "save_on_notice",
        "Save when a preemption is announced",
        "wasted_training.rework",
        (Change(notice=True),),
        ("the notice is long enough for a save, and comes without fail", *_SAME),
        "low",
        None,
        "nobody tells whether a notice is given, and how long before",
        evidence.preempted,
        evidence.failures(("preempted",)),
    ),
    Remedy(
        "overlap_startup",
        "Let data, checkpoint, module and compilation get ready at the same time, not one after the other",
        "trainer_init",
        (Change(overlap=True),),
        (
            "data need only the preprocessing, the checkpoint only the devices, the compilation only the module",
            "they do not slow each other down",
            *_SAME,
        ),
        "medium",
        8,
        "what a stage waits for is known of the usual stages only; on busy hosts they slow each other down",
        evidence.critical,
        evidence.starts,
    ),
    Remedy(
        "replace_stragglers",
        "Take slow hosts out, for which the others wait",
        "hardware_setup",
        (Change(stragglers=True),),
        ("another host is as fast as the others of the job", *_SAME),
        "medium",
        5,
        "the jobs tell who was last in start-up; how much slower training was is estimated from other attempts",
        evidence.stragglers,
        evidence.late,
    ),
    Remedy(
        "fast_detection",
        "Notice hangs and deaths within a minute",
        "wasted_training.hang",
        (Change(detection_s=DETECTION_S),),
        ("no long step or pause is taken for a hang", *_SAME),
        "high",
        10,
        "the jobs tell how long it took from the last advance to the end of a failed attempt",
        evidence.detection,
        evidence.failures(()),
    ),
    Remedy(
        "keep_hosts",
        "Let a failed attempt keep its hosts and images",
        "scheduling",
        (_on("scheduling", KEPT_HOSTS, "later"), _on("hardware_setup.image_pull", WARM_IMAGE, "later")),
        (
            "a fifth of the wait for hardware is left, and a twentieth of pulling the image",
            "spare hosts are there for those that broke",
            *_SAME[:1],
        ),
        "low",
        10,
        "nobody tells which hosts could have been kept, and keeping them makes others wait",
        evidence.stage("scheduling", later=True),
        evidence.failures(()),
    ),
)
"""All of them, in the order in which they are told where they give back alike."""

BY_NAME: Final = {remedy.name: remedy for remedy in REMEDIES}
