"""A model: what its jobs need, and what they meet."""

from math import log2
from typing import Final

from pydantic import Field

from ettwatch_sim.life.config import Config, Length, Name, Positive, Share, Spread

GPUS_A_HOST: Final = 8


class Model(Config):
    """Medians of a model without any remedy. What ends in `_s` is seconds, in `_h` hours.

    Attributes:
        name: Its name.
        gpus: GPUs of a job.
        work_h: New data of a job, in hours of undisturbed training; it varies by `work_spread`.
        samples_per_s: Speed of undisturbed training.
        image_pull_s, binary_start_s: Bringing up the hosts.
        device_init_s, process_group_s, preproc_s, module_s, plugins_s, checkpoint_load_s, first_batch_s, pre_train_s:
            Stages of the trainer's start, without the exchanges between ranks.
        communication_s: Those exchanges, for two ranks; they grow with the logarithm of the ranks.
        trace_s, kernels_s, autotune_s: A cold compilation.
        cache_load_s: What loading compiled code takes instead of `kernels_s` and `autotune_s`.
        lazy: Whether it is compiled in the first step, where no remedy does it earlier.
        recompiles: How often an attempt compiles again in its first hours, on average.
        recompile_s: ... and how long that takes.
        stage_s: Copying a checkpoint to the memory of the host.
        upload_s: Writing it to storage.
        checkpoint_gb: Its size.
        save_every_s: Training between two saves.
        evaluate_every_s: Training between two evaluations; 0 is never.
        evaluate_s: ... and how long one takes.
        data_stall: Share of the loop in which it waits for data.
        publish_s: Publishing the trained model.
        teardown_s: Ending.
        gpu_mtbf_h: GPU-hours between two failures that grow with the number of GPUs.
        job_mtbf_h: Hours between two failures that do not.
        bad_starts: Share of attempts that fail in their start-up.
        spread: Log standard deviation of whole start-ups (load of storage, network and hosts).
        stage_spread: ... of each stage by itself, on top of that.
    """

    name: Name
    gpus: int = Field(default=8, ge=1, le=16_384)
    work_h: float = Field(default=4.0, gt=0, le=720)
    work_spread: Spread = 0.4
    samples_per_s: int = Field(default=100_000, ge=1_000, le=1_000_000_000)
    image_pull_s: Length = 90
    binary_start_s: Length = 20
    device_init_s: Length = 12
    process_group_s: Length = 15
    communication_s: Length = 10
    preproc_s: Length = 40
    module_s: Length = 60
    plugins_s: Length = 8
    checkpoint_load_s: Length = 60
    first_batch_s: Length = 60
    pre_train_s: Length = 10
    trace_s: Length = 40
    kernels_s: Length = 120
    autotune_s: Length = 100
    cache_load_s: Length = 12
    lazy: bool = True
    recompiles: float = Field(default=3, ge=0, le=50)
    recompile_s: Length = 40
    stage_s: Length = 4
    upload_s: Length = 14
    checkpoint_gb: Positive = 40
    save_every_s: float = Field(default=1_200, ge=30, le=86_400)
    evaluate_every_s: float = Field(default=3_600, ge=0, le=864_000)
    evaluate_s: Length = 45
    data_stall: float = Field(default=0.02, ge=0, le=0.9)
    publish_s: Length = 1_500
    teardown_s: Length = 20
    gpu_mtbf_h: Positive = 3_000
    job_mtbf_h: Positive = 40
    bad_starts: Share = 0.03
    spread: Spread = 0.3
    stage_spread: Spread = 0.2

    @property
    def hosts(self) -> int:
        """How many hosts a job takes; the last may be taken in part."""
        return -(-self.gpus // GPUS_A_HOST)

    @property
    def exchanges_s(self) -> float:
        """Seconds of the exchanges between all ranks in start-up."""
        return self.communication_s * log2(self.gpus) if self.gpus > 1 else 0.0

    @property
    def failures_per_hour(self) -> float:
        """Failures of a running job in an hour."""
        return self.gpus / self.gpu_mtbf_h + 1 / self.job_mtbf_h
