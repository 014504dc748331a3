"""Publishing apart from the training job, which hands over its last checkpoint: docs/remedies/publishing.md."""

from ettwatch_trainer.remedies.publishing.handing import hand_over, publish_here, resume_pending, wait
from ettwatch_trainer.remedies.publishing.inference import Inference
from ettwatch_trainer.remedies.publishing.request import PublishError, Request, Status, status

__all__ = [
    "Inference",
    "PublishError",
    "Request",
    "Status",
    "hand_over",
    "publish_here",
    "resume_pending",
    "status",
    "wait",
]
