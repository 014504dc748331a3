"""The names of time: six components, their documented sub-stages, and the seventh stage."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

COMPONENTS: Final[tuple[str, ...]] = (
    "scheduling",
    "hardware_setup",
    "trainer_init",
    "pt2_compilation",
    "wasted_training",
    "shutdown",
)
"""The six components of lost time, in the order of a job's life."""

EFFECTIVE: Final = "effective_training"
"""The stage of time that consumed new data. It belongs to no component and is no phase."""

STAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "scheduling": "getting hardware when it is available",
        "scheduling.queue_wait": "waiting in the queue of the scheduler",
        "hardware_setup": "bringing launcher and trainer binaries up",
        "hardware_setup.image_pull": "fetching and unpacking the image",
        "hardware_setup.binary_start": "starting the launcher or trainer binary",
        "trainer_init": "start-up of the trainer",
        "trainer_init.device_init": "opening the devices",
        "trainer_init.process_group_init": "forming the process groups",
        "trainer_init.preproc_creation": "creating the preprocessing",
        "trainer_init.train_module_creation": "creating the model, its shards and the optimizer",
        "trainer_init.init_plugins": "starting plugins",
        "trainer_init.pre_train": "the last work before the first step",
        "trainer_init.get_first_batch_data": "waiting for the first batch of data",
        "trainer_init.checkpoint_load": "loading a checkpoint",
        "pt2_compilation": "compiling with torch.compile",
        "pt2_compilation.dynamo": "tracing Python code to graphs",
        "pt2_compilation.aot_autograd": "tracing forward and backward graphs",
        "pt2_compilation.inductor": "generating and building kernels",
        "pt2_compilation.autotune": "trying kernels to find the fastest",
        "pt2_compilation.cache_load": "loading compiled code from a cache",
        "pt2_compilation.recompile": "compiling again inside the training loop",
        "wasted_training": "in the training loop, without new data",
        "wasted_training.checkpoint_save": "the blocking part of saving a checkpoint",
        "wasted_training.rework": "training again on data that was passed before",
        "wasted_training.data_stall": "waiting for data",
        "wasted_training.hang": "no new data for longer than the hang limit",
        "wasted_training.no_progress": "no new data before a rollback, a failure or the end of the loop",
        "wasted_training.evaluation": "evaluating inside the training loop",
        "shutdown": "from the end of the training loop to the release of the hardware",
        "shutdown.final_checkpoint": "saving the last checkpoint",
        "shutdown.model_publish": "publishing the trained model",
        "shutdown.teardown": "ending processes and releasing hardware",
    }
)
"""Every documented stage of the six components with its meaning. Other sub-stages are legal as they come."""

MAX_PHASE_CHARS: Final = 200
"""The longest phase name, in characters."""

PHASE_PATTERN: Final = rf"^({'|'.join(COMPONENTS)})(\.[a-z0-9_]+)*$"
"""What a phase name looks like: a component, then any number of sub-stages in lower case."""

_match_phase = re.compile(PHASE_PATTERN).fullmatch


def is_phase(name: str) -> bool:
    """Tell whether `name` may stand in the field `phase`: a component, or a dotted sub-stage of one."""
    return len(name) <= MAX_PHASE_CHARS and _match_phase(name) is not None


def component_of(stage: str) -> str:
    """Return the component of a stage: its first dotted part. `EFFECTIVE` is its own.

    Raises ValueError where that part is neither.
    """
    component = stage.partition(".")[0]
    if component in COMPONENTS or stage == EFFECTIVE:
        return component
    raise ValueError(f"{stage!r} belongs to no component; the components are {', '.join(COMPONENTS)}")
