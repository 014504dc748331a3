"""One run, measured by ettwatch's own rules from the events that the run left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ettwatch_core import JobState, Rules, Snapshot, apply, snapshot
from ettwatch_schemas import decode_message


class NotMeasured(RuntimeError):
    """A run left no events of its job, or not of a whole one. The text says what is missing."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is read off one run, in seconds and percent.

    Of a stage: the time it was open, charged or hidden, of all its spans together.
    """

    e2e_s: float
    effective_s: float
    ett_pct: float
    tts_s: float
    ttr_s: float
    communication_s: float
    init_s: float
    compile_cold_s: float
    compile_restart_s: float
    recompile_s: float
    checkpoint_blocking_s: float
    save_blocking_s: float
    rework_s: float
    shutdown_s: float
    publish_s: float
    components: dict[str, float]

    def plain(self) -> dict[str, object]:
        """As JSON has it."""
        return asdict(self)


def events_of(folder: Path) -> Iterable[bytes]:
    """The lines of all event files of a spool folder."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from path.read_bytes().splitlines()


def measure(spool: Path, job: str) -> Figures:
    """The figures of one run. Raises NotMeasured."""
    state, rules = JobState(job), Rules(lateness=None)
    for line in events_of(spool):
        events, errors = decode_message(line)
        if errors:
            raise NotMeasured(f"{job}: an event was refused: {errors[0]}")
        for event in events:
            if event.job == job:
                apply(state, event, rules)
    if not state.accepted:
        raise NotMeasured(f"{job}: there are no events in {spool}")
    return figures(snapshot(state, rules))


def figures(snap: Snapshot) -> Figures:
    """The figures of one job. Raises NotMeasured where it did not start, recover once and succeed."""
    summary = snap.summary
    if summary.status != "succeeded" or summary.tts_s is None or not summary.ttr_s or summary.ett_pct is None:
        raise NotMeasured(
            f"{summary.job}: the run is {summary.status}, with {summary.attempts} attempts and TTR {summary.ttr_s}; "
            "a run has to start, to recover and to succeed"
        )
    first, later = snap.attempts[0].attempt, {attempt.attempt for attempt in snap.attempts[1:]}

    def spent(prefix: str, attempts: set[int] | None = None) -> float:
        of = [
            span.charged + span.hidden
            for span in snap.spans
            if (span.phase == prefix or span.phase.startswith(prefix + "."))
            and not span.background
            and not span.container
            and (attempts is None or span.attempt in attempts)
        ]
        return sum(of) / 1e6

    saves = [span for span in snap.spans if span.phase == "wasted_training.checkpoint_save" and not span.background]
    blocking = spent("wasted_training.checkpoint_save")
    recompile = spent("pt2_compilation.recompile")
    return Figures(
        e2e_s=summary.e2e_s,
        effective_s=summary.effective_s,
        ett_pct=summary.ett_pct,
        tts_s=summary.tts_s,
        ttr_s=sum(summary.ttr_s),
        communication_s=spent("trainer_init.shard_metadata"),
        init_s=summary.components["trainer_init"],
        compile_cold_s=spent("pt2_compilation", {first}),
        compile_restart_s=spent("pt2_compilation", later),
        recompile_s=recompile,
        checkpoint_blocking_s=blocking,
        save_blocking_s=blocking / len(saves) if saves else 0.0,
        rework_s=summary.stages.get("wasted_training.rework", 0.0),
        shutdown_s=summary.components["shutdown"],
        publish_s=spent("shutdown.model_publish"),
        components=dict(summary.components),
    )
