"""Fleets without GPUs: the events of random jobs, drawn from a seed, as producers and networks deliver them.

Everything public is importable from here.
"""

from ettwatch_sim.delivery import IN_ORDER, Delivery, deliver
from ettwatch_sim.facts import Fact, Failure, Hours, Injected, JobDone, Start
from ettwatch_sim.fleet import random_jobs
from ettwatch_sim.job import random_job
from ettwatch_sim.shape import Shape

__all__ = [
    "IN_ORDER",
    "Delivery",
    "Fact",
    "Failure",
    "Hours",
    "Injected",
    "JobDone",
    "Shape",
    "Start",
    "deliver",
    "random_job",
    "random_jobs",
]
