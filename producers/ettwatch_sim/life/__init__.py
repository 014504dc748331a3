"""Fleets as they are in life: jobs that wait, start, fail, are preempted, recover and publish, by mechanism.

Everything public is importable from here.
"""

from ettwatch_sim.life.batches import Message, batches
from ettwatch_sim.life.config import ScenarioError
from ettwatch_sim.life.files import Folder, OneFile
from ettwatch_sim.life.load import load_scenario, parse_scenario
from ettwatch_sim.life.model import Model
from ettwatch_sim.life.pace import Clock, Rate
from ettwatch_sim.life.presets import PRESETS, alone, preset
from ettwatch_sim.life.profiles import PROFILES
from ettwatch_sim.life.remedies import REMEDIES, Remedy, best_interval
from ettwatch_sim.life.scenario import Cluster, Injection, Maintenance, Scenario, Team, Travel
from ettwatch_sim.life.sender import Sender
from ettwatch_sim.life.stream import in_order, simulate
from ettwatch_sim.life.summaries import summaries
from ettwatch_sim.life.truth import truth

__all__ = [
    "PRESETS",
    "PROFILES",
    "REMEDIES",
    "Clock",
    "Cluster",
    "Folder",
    "Injection",
    "Maintenance",
    "Message",
    "Model",
    "OneFile",
    "Rate",
    "Remedy",
    "Scenario",
    "ScenarioError",
    "Sender",
    "Team",
    "Travel",
    "alone",
    "batches",
    "best_interval",
    "in_order",
    "load_scenario",
    "parse_scenario",
    "preset",
    "simulate",
    "summaries",
    "truth",
]
