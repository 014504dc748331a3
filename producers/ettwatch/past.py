"""Phases that are told of when they are over."""

from ettwatch.log import guarded
from ettwatch.recorder import Recorder


@guarded(None)
def tell_past(recorder: Recorder, phase: str, from_ns: int, to_ns: int) -> None:
    """Tell of a phase that is over, by monotonic times in nanoseconds."""
    outbox = recorder._outbox
    span = outbox.new_id()
    outbox.send("phase_started", outbox.clock.at(from_ns), id=span, span=span, phase=phase)
    outbox.send("phase_ended", outbox.clock.at(to_ns), span=span, outcome="ok")
