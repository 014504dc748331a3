"""The events of an attempt up to its first batch."""

from typing import Any

from ettwatch_schemas import AttemptStarted, Event, Heartbeat, JobSubmitted, Progress, TrainingStarted
from ettwatch_sim.life.attempt import Attempt
from ettwatch_sim.life.charge import Span
from ettwatch_sim.life.dice import US
from ettwatch_sim.life.pen import Pen

HEARTBEAT = 60 * US
SAMPLES_A_STEP = 4_096


def submitted(attempt: Attempt) -> Event:
    """Return the event with which a job begins."""
    order = attempt.order
    return JobSubmitted(
        id=f"{order.name}:submit",
        job=order.name,
        ts=order.submitted,
        source="scheduler",
        team=order.team.name,
        model=order.model.name,
        cluster=order.cluster,
        gpus=order.model.gpus,
        labels={"version": f"v{order.version}"},
        eligible_ts=order.eligible,
    )


def opening(pen: Pen, report_every_s: float) -> list[Event]:
    """Return the events from the queue to the first batch, or to the death before it, in time order."""
    attempt = pen.attempt
    startup, model = attempt.startup, attempt.order.model
    events = pen.span("scheduling.queue_wait", attempt.queued, attempt.start, source="scheduler")
    allocated: dict[str, Any] = {"gpus": model.gpus, "world_size": model.gpus, "trigger": attempt.trigger}
    events.append(pen.write(AttemptStarted, attempt.start, source="scheduler", **allocated))
    for span in startup.spans:
        if not attempt.trained and span.start >= attempt.frozen:
            continue
        whole = attempt.trained or span.end <= attempt.frozen
        if span.source == "launcher":
            # The launcher lives in the image: it cannot speak before.
            events.append(pen.write(AttemptStarted, span.start, source="launcher", **allocated))
        events += _on_ranks(pen, span, whole)
    boot = next(span.start for span in startup.spans if span.phase == "trainer_init")
    quiet = startup.loop_start if startup.loop_start < attempt.frozen else attempt.heard_until
    events += [pen.write(Heartbeat, ts) for ts in range(boot + HEARTBEAT, quiet, HEARTBEAT)]
    if attempt.trained or startup.loop_start < attempt.frozen:
        events += _first_step(pen, report_every_s)
    return sorted(events, key=lambda event: event.ts)


def _first_step(pen: Pen, report_every_s: float) -> list[Event]:
    """The loop begins; what compiles in its first step stands still until the first batch."""
    attempt = pen.attempt
    start, every = attempt.startup.loop_start, attempt.loop.pace.report_every
    until = attempt.startup.first_batch if attempt.trained else min(attempt.startup.first_batch, attempt.heard_until)
    told: dict[str, Any] = {"position": attempt.position, "step": attempt.position // SAMPLES_A_STEP}
    return [
        pen.write(TrainingStarted, start, report_every_s=float(report_every_s), **told),
        *(pen.write(Progress, ts, data_wait_us=0, **told) for ts in range(start + every, until, every)),
    ]


def _on_ranks(pen: Pen, span: Span, whole: bool) -> list[Event]:
    """A phase as its ranks tell it: one is last, on the slow host if there is one, and waits for nobody."""
    attempt = pen.attempt
    if span.source != "trainer":
        return pen.span(span.phase, span.start, span.end if whole else None, source=span.source)
    length = span.end - span.start
    slow = pen.ranks[-1] if attempt.slow is None else attempt.hosts.index(attempt.slow) * 8
    last = slow if span.lag and slow in pen.ranks else pen.chance.choice(pen.ranks)
    attrs: dict[str, Any] | None = None
    if span.phase == "pt2_compilation":
        order = attempt.order
        key = f"{order.team.name}/{order.model.name}/v{order.version}"
        attrs = {"cache": "hit" if attempt.cached else "miss", "cache_key": key}
    elif span.phase.endswith("checkpoint_load"):
        attrs = {"bytes": int(attempt.order.model.checkpoint_gb * 1e9)}
    clean = attempt.fault is not None and attempt.fault.how == "clean"
    out: list[Event] = []
    for i, rank in enumerate(pen.ranks):
        start = span.start if i == 0 else span.start + int(length * 0.01 * pen.chance.random())
        early = 0 if rank == last else span.lag + int((length - span.lag) * 0.03 * pen.chance.random())
        if not whole:
            start = min(start, attempt.frozen)
        end = max(start, span.end - early) if whole else attempt.frozen if clean else None
        out += pen.span(span.phase, start, end, rank=rank, parent=span.parent, attrs=attrs, error=not whole)
    return out
