"""Preemption: what taking the GPUs of each running job would waste, and whose to take. Nothing is preempted here.

`rank` is the policy, a pure function of what runs; `read_live` says what runs, out of ClickHouse; `plain_plan` writes a
plan for JSON.
"""

from ettwatch_monitor.preempt.history import History, Measured, Times
from ettwatch_monitor.preempt.live import LeftOut, Live, read_live
from ettwatch_monitor.preempt.observed import Durable, Observed, running_of
from ettwatch_monitor.preempt.plain import plain_plan
from ettwatch_monitor.preempt.plan import Later, Plan, rank
from ettwatch_monitor.preempt.running import Running, RunningError
from ettwatch_monitor.preempt.waste import Waste, waste_of

__all__ = [
    "Durable",
    "History",
    "Later",
    "LeftOut",
    "Live",
    "Measured",
    "Observed",
    "Plan",
    "Running",
    "RunningError",
    "Times",
    "Waste",
    "plain_plan",
    "rank",
    "read_live",
    "running_of",
    "waste_of",
]
