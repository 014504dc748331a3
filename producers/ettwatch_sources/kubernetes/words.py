"""Kubernetes' own words for states and reasons, of its core, of Kueue, JobSet, the trainer, KubeRay and Volcano.

Each is mapped to how an attempt ended and why. Words that are in no table are kept as they stand and counted as
unknown.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ettwatch_schemas import Cause, Outcome


class Word(NamedTuple):
    """What a word means."""

    outcome: Outcome | None
    """How an attempt ended; None: it says why only, or that it has not ended."""
    cause: Cause
    means: str


def _table(words: dict[str, tuple[Outcome | None, Cause, str]]) -> Mapping[str, Word]:
    return MappingProxyType({word: Word(*told) for word, told in words.items()})


CONTAINER: Final = _table(
    {
        "Completed": (None, "unknown", "ended with exit code 0"),
        "ContainerCannotRun": (None, "config", "the container could not be run"),
        "ContainerCreating": (None, "unknown", "is being created"),
        "ContainerStatusUnknown": (None, "hardware", "the node lost sight of it"),
        "CrashLoopBackOff": (None, "user_code", "ended again and again, waits to be started"),
        "CreateContainerConfigError": (None, "config", "a config map or secret is missing"),
        "CreateContainerError": (None, "config", "the container could not be created"),
        "DeadlineExceeded": (None, "timeout", "the deadline of its job passed"),
        "ErrImageNeverPull": (None, "config", "the image is not there and may not be pulled"),
        "ErrImagePull": (None, "dependency", "the image could not be pulled"),
        "Error": (None, "unknown", "ended with an exit code other than 0"),
        "Evicted": (None, "capacity", "evicted from its node"),
        "ImageInspectError": (None, "config", "the image could not be inspected"),
        "ImagePullBackOff": (None, "dependency", "the image could not be pulled, waits to try again"),
        "InvalidImageName": (None, "config", "the image's name is malformed"),
        "OOMKilled": (None, "host_memory", "killed for memory"),
        "PodInitializing": (None, "unknown", "its pod is being made ready"),
        "RegistryUnavailable": (None, "dependency", "the registry of images is out of reach"),
        "RunContainerError": (None, "config", "the container could not be started"),
        "StartError": (None, "config", "the command could not be started"),
    }
)
"""Reasons of containers that wait or have ended."""

POD: Final = _table(
    {
        "DeadlineExceeded": (None, "timeout", "its deadline passed"),
        "Evicted": (None, "capacity", "evicted: the node ran short of something"),
        "NodeAffinity": (None, "config", "does not fit the node any longer"),
        "NodeLost": (None, "hardware", "its node does not answer"),
        "NodeShutdown": (None, "maintenance", "its node was shut down"),
        "OutOfcpu": (None, "capacity", "the node had no processors left"),
        "OutOfmemory": (None, "capacity", "the node had no memory left"),
        "OutOfpods": (None, "capacity", "the node may hold no more pods"),
        "OutOfnvidia.com/gpu": (None, "capacity", "the node had no GPUs left"),
        "Preempting": (None, "capacity", "a more important pod took its place"),
        "Shutdown": (None, "maintenance", "its node was shut down"),
        "Terminated": (None, "maintenance", "ended because its node was shut down"),
        "UnexpectedAdmissionError": (None, "hardware", "the node could not give it its devices"),
    }
)
"""Reasons of pods that failed."""

DISRUPTION: Final = _table(
    {
        "DeletionByPodGC": (None, "hardware", "its node is gone"),
        "DeletionByTaintManager": (None, "hardware", "its node was tainted, mostly because it did not answer"),
        "EvictionByEvictionAPI": (None, "maintenance", "evicted through the API, as a drain does"),
        "PreemptionByScheduler": (None, "capacity", "preempted by a more important pod"),
        "PreemptionByKubeScheduler": (None, "capacity", "preempted by a more important pod"),
        "TerminationByKubelet": (None, "maintenance", "ended by its node: shut down, or short of something"),
    }
)
"""Reasons of the condition DisruptionTarget of pods."""

SCHEDULED: Final = _table(
    {
        "SchedulerError": (None, "unknown", "the scheduler failed"),
        "SchedulingGated": (None, "unknown", "not to be scheduled yet"),
        "Unschedulable": (None, "unknown", "no node fits"),
    }
)
"""Reasons of the condition PodScheduled where it is false: the job waits."""

KUEUE_EVICTED: Final = _table(
    {
        "AdmissionCheck": ("preempted", "capacity", "a check of admission no longer holds"),
        "ClusterQueueStopped": ("preempted", "maintenance", "its cluster queue was stopped"),
        "Deactivated": ("cancelled", "unknown", "set inactive"),
        "DeactivatedDueToAdmissionCheck": ("cancelled", "unknown", "set inactive: a check rejected it"),
        "DeactivatedDueToMaximumExecutionTimeExceeded": ("failed", "timeout", "set inactive: it ran too long"),
        "DeactivatedDueToRequeuingLimitExceeded": ("failed", "capacity", "set inactive: requeued too often"),
        "InactiveWorkload": ("cancelled", "unknown", "set inactive"),
        "LocalQueueStopped": ("preempted", "maintenance", "its local queue was stopped"),
        "MaximumExecutionTimeExceeded": ("failed", "timeout", "ran longer than it may"),
        "NodeFailures": ("failed", "hardware", "its nodes failed"),
        "PodsReadyTimeout": ("failed", "timeout", "its pods were not ready in time"),
        "Preempted": ("preempted", "capacity", "preempted by another workload"),
        "RequeuingLimitExceeded": ("failed", "capacity", "requeued too often"),
        "WorkloadSliceReplaced": ("preempted", "unknown", "replaced by one of another size"),
    }
)
"""Reasons of the condition Evicted of Kueue's workloads."""

KUEUE_PREEMPTED: Final = _table(
    {
        "InClusterQueue": ("preempted", "capacity", "by a more important one of its queue"),
        "InCohortFairSharing": ("preempted", "capacity", "for a fair share in its cohort"),
        "InCohortReclaimWhileBorrowing": ("preempted", "capacity", "by one of its cohort, which borrows"),
        "InCohortReclamation": ("preempted", "capacity", "by one of its cohort, which took back its quota"),
    }
)
"""Reasons of the condition Preempted of Kueue's workloads."""

KUEUE_FINISHED: Final = _table(
    {
        "AdmissionChecksRejected": ("failed", "config", "rejected by a check of admission"),
        "Failed": ("failed", "unknown", "its job failed"),
        "JobFinished": ("succeeded", "unknown", "its job finished (older versions say no more)"),
        "OutOfSync": ("cancelled", "config", "not in step with its job"),
        "OwnerNotFound": ("cancelled", "unknown", "its job is gone"),
        "Succeeded": ("succeeded", "unknown", "its job succeeded"),
        "WorkloadSliceReplaced": ("cancelled", "unknown", "replaced by one of another size"),
    }
)
"""Reasons of the condition Finished of Kueue's workloads."""

JOB_FAILED: Final = _table(
    {
        "BackoffLimitExceeded": ("failed", "unknown", "its pods failed too often"),
        "DeadlineExceeded": ("failed", "timeout", "its deadline passed"),
        "FailedIndexes": ("failed", "unknown", "some of its indexes failed"),
        "MaxFailedIndexesExceeded": ("failed", "unknown", "too many of its indexes failed"),
        "PodFailurePolicy": ("failed", "unknown", "a pod failed in a way that its policy does not repeat"),
        "JobSetFailed": ("failed", "unknown", "its job set failed"),
    }
)
"""Reasons of the condition Failed of jobs (batch/v1)."""

JOBSET: Final = _table(
    {
        "AllJobsCompleted": ("succeeded", "unknown", "all its jobs completed"),
        "FailJobSetFailurePolicyAction": ("failed", "unknown", "its failure policy says so"),
        "FailedJobs": ("failed", "unknown", "a job of it failed"),
        "JobsCompleted": ("succeeded", "unknown", "its jobs completed"),
        "ReachedMaxRestarts": ("failed", "unknown", "started anew as often as it may"),
        "ResumeJobs": (None, "unknown", "resumed"),
        "SuspendedJobs": ("preempted", "capacity", "suspended, mostly by a queue"),
    }
)
"""Reasons of the conditions of JobSets."""

TRAINJOB: Final = _table(
    {
        "DeadlineExceeded": ("failed", "timeout", "its deadline passed"),
        "JobsBuildFailed": (None, "config", "its jobs could not be described"),
        "JobsCreationFailed": (None, "config", "its jobs could not be created"),
        "JobsCreationSucceeded": (None, "unknown", "its jobs were created"),
        "Resumed": (None, "unknown", "resumed"),
        "Suspended": ("preempted", "capacity", "suspended, mostly by a queue"),
        "TrainingRuntimeNotSupported": ("failed", "config", "its runtime is not known"),
    }
)
"""Reasons of the conditions of TrainJobs (trainer.kubeflow.org); those of their JobSets come on top."""

RAYJOB: Final = _table(
    {
        "Complete": ("succeeded", "unknown", "its Ray job ended; how is said by the status of that"),
        "Failed": ("failed", "unknown", "failed for good"),
        "Initializing": (None, "unknown", "its RayCluster is being made"),
        "Retrying": ("failed", "unknown", "failed and is started anew, on a new RayCluster"),
        "Running": (None, "unknown", "its RayCluster is there and its Ray job handed in"),
        "Scheduled": (None, "unknown", "waits for its time"),
        "Scheduling": (None, "unknown", "is being prepared for its next time"),
        "Suspended": ("preempted", "capacity", "suspended, mostly by a queue"),
        "Suspending": ("preempted", "capacity", "is being suspended"),
        "ValidationFailed": (None, "config", "its description is wrong, it waits to be corrected"),
        "Waiting": (None, "unknown", "waits for a Ray job from outside"),
    }
)
"""`jobDeploymentStatus` of RayJobs (ray.io)."""

RAYJOB_REASON: Final = _table(
    {
        "AppFailed": ("failed", "unknown", "its Ray job failed"),
        "DeadlineExceeded": ("failed", "timeout", "its deadline passed"),
        "JobDeploymentStatusTransitionGracePeriodExceeded": ("failed", "unknown", "its end was not confirmed in time"),
        "JobStatusCheckTimeoutExceeded": ("failed", "unknown", "its dashboard did not answer in time"),
        "SubmissionFailed": ("failed", "unknown", "its Ray job could not be handed in"),
        "ValidationFailed": ("failed", "config", "its description is wrong"),
    }
)
"""`reason` of RayJobs that failed."""

TRAINING: Final = _table(
    {
        "Created": (None, "unknown", "accepted"),
        "Failed": ("failed", "unknown", "failed for good"),
        "Restarting": ("failed", "unknown", "a pod failed and is started anew"),
        "Running": (None, "unknown", "its pods run"),
        "Succeeded": ("succeeded", "unknown", "succeeded"),
        "Suspended": ("preempted", "capacity", "suspended, mostly by a queue"),
    }
)
"""Types of the conditions of PyTorchJobs (kubeflow.org/v1)."""

VOLCANO: Final = _table(
    {
        "Aborted": ("cancelled", "unknown", "aborted by its user or a policy"),
        "Aborting": ("cancelled", "unknown", "is being aborted"),
        "Completed": ("succeeded", "unknown", "enough of its pods completed"),
        "Completing": (None, "unknown", "enough of its pods completed, the others are ended"),
        "Failed": ("failed", "unknown", "failed: started anew as often as it may"),
        "Inqueue": (None, "unknown", "resources for it were found"),
        "Pending": (None, "unknown", "waits"),
        "Restarting": ("failed", "unknown", "is started anew"),
        "Running": (None, "unknown", "enough of its pods run"),
        "Terminated": ("failed", "unknown", "terminated by a policy"),
        "Terminating": ("failed", "unknown", "is being terminated"),
        "Unknown": (None, "unknown", "some of its pods run, others cannot be scheduled"),
    }
)
"""Phases of Volcano's jobs."""

TABLES: Final[Mapping[str, Mapping[str, Word]]] = MappingProxyType(
    {
        "reason of a container": CONTAINER,
        "reason of a pod": POD,
        "reason of DisruptionTarget": DISRUPTION,
        "reason of PodScheduled": SCHEDULED,
        "reason of Evicted (Kueue)": KUEUE_EVICTED,
        "reason of Preempted (Kueue)": KUEUE_PREEMPTED,
        "reason of Finished (Kueue)": KUEUE_FINISHED,
        "reason of Failed (batch/v1 Job)": JOB_FAILED,
        "reason of a condition (JobSet)": JOBSET,
        "reason of a condition (TrainJob)": TRAINJOB,
        "jobDeploymentStatus (RayJob)": RAYJOB,
        "reason of a RayJob": RAYJOB_REASON,
        "condition (PyTorchJob)": TRAINING,
        "phase (Volcano Job)": VOLCANO,
    }
)
"""All tables by what their words are."""
