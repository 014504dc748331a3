"""The events of an attempt from the end of its loop, or from its death."""

from typing import Any, Final

from ettwatch_schemas import AttemptEnded, CheckpointDurable, Event, Heartbeat, JobEnded, TrainingEnded
from ettwatch_sim.life.dice import US
from ettwatch_sim.life.fleet import Over
from ettwatch_sim.life.looping import told_at
from ettwatch_sim.life.opening import HEARTBEAT, SAMPLES_A_STEP
from ettwatch_sim.life.pen import Pen

_MESSAGES: Final = {
    "hardware": "GPU fell off the bus (Xid 79)",
    "network": "NCCL watchdog: collective timed out",
    "storage": "OSError: [Errno 5] Input/output error",
    "host_memory": "killed: out of memory (cgroup)",
    "gpu_memory": "torch.OutOfMemoryError: CUDA out of memory",
    "timeout": "no progress: ended by the watchdog",
    "dependency": "ConnectionError: feature store is not reachable",
    "maintenance": "drained for maintenance",
    "capacity": "preempted for a job of higher priority",
    "user_code": "ValueError: shapes do not match",
    "config": "KeyError: 'learning_rate'",
    "unknown": "exit without a message",
}


def ending(pen: Pen) -> list[Event]:
    """Return the events from the end of the loop on, in time order."""
    attempt = pen.attempt
    events = _shutdown(pen) if attempt.fault is None else _last_words(pen)
    return sorted(events, key=lambda event: event.ts)


def ended(over: Over) -> Event:
    """Return the event with which a job is over."""
    source = "scheduler" if over.outcome == "cancelled" else "launcher"
    job = over.order.name
    return JobEnded.model_validate(
        {"id": f"{job}:over", "job": job, "ts": over.ts, "outcome": over.outcome, "source": source}
    )


def _shutdown(pen: Pen) -> list[Event]:
    attempt = pen.attempt
    at = attempt.frozen
    events = [pen.write(TrainingEnded, at, **told_at(pen, at))]
    for stage, length in attempt.shutdown:
        events += pen.span(stage, at, at + length)
        if stage == "shutdown.final_checkpoint":
            events.append(
                pen.write(
                    CheckpointDurable,
                    at + length,
                    position=attempt.reached,
                    step=attempt.reached // SAMPLES_A_STEP,
                    bytes=int(attempt.order.model.checkpoint_gb * 1e9),
                    started_ts=at,
                )
            )
        at += length
    events += [pen.write(Heartbeat, ts) for ts in range(attempt.frozen + HEARTBEAT, at, HEARTBEAT)]
    events.append(pen.write(AttemptEnded, attempt.end, source="launcher", outcome="succeeded", exit_code=0))
    return events


def _last_words(pen: Pen) -> list[Event]:
    """Who tells of a death: the scheduler where the host is gone, else the launcher; the trainer where it can."""
    attempt = pen.attempt
    fault = attempt.fault
    assert fault is not None
    if not attempt.told:
        return []
    said: dict[str, Any] = {"outcome": fault.outcome, "cause": fault.cause, "message": _MESSAGES[fault.cause]}
    if fault.outcome == "cancelled":
        del said["message"], said["cause"]
    events = []
    gone = fault.how == "killed" and fault.cause in ("hardware", "capacity", "maintenance")
    if fault.how == "clean" and attempt.frozen + US < attempt.end:
        events.append(pen.write(AttemptEnded, attempt.frozen + US // 2, exit_code=1, **said))
    if gone or fault.outcome == "cancelled" or fault.cause == "hardware":
        events.append(pen.write(AttemptEnded, attempt.end, source="scheduler", signal=9, **said))
    if not gone and fault.outcome != "cancelled":
        code: dict[str, Any] = {"clean": {"exit_code": 1}, "killed": {"signal": 9}, "stuck": {"signal": 6}}[fault.how]
        ts = attempt.end if fault.cause != "hardware" else max(attempt.start, attempt.end - US)
        events.append(pen.write(AttemptEnded, ts, source="launcher", **said, **code))
    return events
