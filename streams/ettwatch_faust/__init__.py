"""The stream side on Kafka: its topics, and how its brokers are reached.

Everything public is importable from here.
"""

from ettwatch_faust.brokers import BROKER_VARIABLES, Access, BrokersError, admin, connecting
from ettwatch_faust.check import Finding, Seen, check, clash
from ettwatch_faust.look import look
from ettwatch_faust.precheck import precheck
from ettwatch_faust.topics import TOPIC_VARIABLES, Names, SettingError, TopicSettings, TopicSpec, names, plan

__all__ = [
    "BROKER_VARIABLES",
    "TOPIC_VARIABLES",
    "Access",
    "BrokersError",
    "Finding",
    "Names",
    "Seen",
    "SettingError",
    "TopicSettings",
    "TopicSpec",
    "admin",
    "check",
    "clash",
    "connecting",
    "look",
    "names",
    "plan",
    "precheck",
]
