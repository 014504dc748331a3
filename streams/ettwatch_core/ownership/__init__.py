"""Which team answers for a second of a job: the ownership file as values, asked by stage, cluster and model."""

from ettwatch_core.nodes import Problem
from ettwatch_core.ownership.owner import Owner, Owners, Rule
from ettwatch_core.ownership.parse import parse_owners
from ettwatch_core.ownership.problem import OwnersError

__all__ = ["Owner", "Owners", "OwnersError", "Problem", "Rule", "parse_owners"]
