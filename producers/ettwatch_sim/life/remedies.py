"""The remedies: switches on mechanisms, never on results, and what is left of a cost where one is on."""

from math import sqrt
from typing import Final, Literal, TypeAlias, get_args

Remedy: TypeAlias = Literal[
    "communication",
    "overlap",
    "dynamic_shapes",
    "autotune",
    "compile_cache",
    "async_checkpoints",
    "save_interval",
    "standalone_publishing",
    "cheap_recovery",
    "preemption",
]

REMEDIES: Final[tuple[Remedy, ...]] = get_args(Remedy)
"""All of them.

`communication`: sharding metadata are built from one plan, and no needless process groups are formed.
`overlap`: the data pipeline, reading the checkpoint and compiling (on a synthetic batch) run beside each other.
`dynamic_shapes`: inputs that vary are marked, so that few compile again in the loop.
`autotune`: the search is limited by a budget, and what it found is kept for the next attempts.
`compile_cache`: compiled code is shared by attempts, hosts and jobs of one version of the code.
`async_checkpoints`: training waits for the copy to host memory only; the upload is in the background.
`save_interval`: the time between saves follows from what a save blocks and how often the job fails.
`standalone_publishing`: the job ends at its last checkpoint; publishing does not hold GPUs.
`cheap_recovery`: faults are noticed sooner, hosts and allocation are kept, images are not pulled again.
`preemption`: those are preempted that lose least by it.
"""

COMMUNICATION_LEFT: Final = 0.05
"""Share of the exchanges of start-up that one broadcast needs."""
RECOMPILES_LEFT: Final = 0.1
"""Share of the recompiles that stay when shapes are marked dynamic."""
AUTOTUNE_LEFT: Final = 0.25
"""Share of the autotuning that a budget allows in the first attempt."""
AUTOTUNE_KEPT: Final = 0.05
"""Share of it in later attempts, which find what the first one chose."""
LOCAL_CACHE: Final = 0.2
"""Chance that a later attempt finds the compiled code of an earlier one on its hosts, without a shared cache."""
SHARED_CACHE: Final = 0.97
"""Chance that a shared cache gives what it holds."""
DETECTION_LEFT: Final = 0.2
"""Share of the time until a fault is noticed, with heartbeats between hosts."""
WARM_IMAGE: Final = 0.05
"""Share of pulling an image that is there already."""
SHORTEST_INTERVAL_S: Final = 60.0
LONGEST_INTERVAL_S: Final = 7_200.0


def best_interval(blocking_s: float, mtbf_s: float) -> float:
    """Return the time between saves that costs least, in seconds: sqrt(2 x blocking x MTBF) (Young 1974), bounded."""
    return min(LONGEST_INTERVAL_S, max(SHORTEST_INTERVAL_S, sqrt(2 * blocking_s * mtbf_s)))
