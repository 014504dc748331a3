"""Phases that are told of when they are over."""

from ettwatch.log import guarded
from ettwatch.recorder import Recorder


@guarded(None)
def tell_past(recorder: Recorder, phase: str, from_ns: int, to_ns: int, background: bool = False) -> None:
    """Tell of a phase that is over, by monotonic times in nanoseconds; `background`: training did not wait for it."""
    outbox = recorder._outbox
    span = outbox.new_id()
    outbox.send(
        "phase_started", outbox.clock.at(from_ns), id=span, span=span, phase=phase, background=background or None
    )
    outbox.send("phase_ended", outbox.clock.at(to_ns), span=span, outcome="ok")
