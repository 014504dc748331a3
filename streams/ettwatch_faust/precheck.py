"""Whether a worker or the sink can begin: brokers that are reached, a login that they take, topics as planned."""

from collections.abc import Sequence

from ettwatch_faust.brokers import Access, admin
from ettwatch_faust.check import Finding, check
from ettwatch_faust.look import look
from ettwatch_faust.topics import SettingError, TopicSpec


def precheck(access: Access, plan: Sequence[TopicSpec], seconds: float = 10) -> None:
    """Return if the work can begin. It needs the right DESCRIBE on the topics of the plan, and changes nothing.

    Args:
        access: How the brokers are reached.
        plan: The topics that have to be there, with their numbers of partitions.
        seconds: To wait for the brokers, with each of the three things they are asked.

    Raises:
        BrokersError: They are not reached, refuse the login, or do not tell of a topic.
        SettingError: A topic is missing, or its number of partitions is wrong: the first one, and what to do.
    """
    with admin(access, seconds) as client:
        view = look(client, plan, configs=False)
    stopping = [finding for finding in check(view, plan) if finding.stops]
    if stopping:
        raise SettingError(_line(stopping))


def _line(stopping: Sequence[Finding]) -> str:
    first = stopping[0]
    others = {finding.topic for finding in stopping} - {first.topic}
    also = f" (and {len(others)} more {'topic is' if len(others) == 1 else 'topics are'} wrong)" if others else ""
    if first.code == "missing":
        return f"the topic {first.topic} is missing{also}; run `ettwatch topics create` with the same settings"
    found = first.found if "partition" in first.found else f"{first.found} partition{'s' * (first.found != '1')}"
    return (
        f"the topic {first.topic} has {found}, wanted: {first.wanted}{also}; {first.fix} "
        "(`ettwatch topics check` lists all, `ettwatch topics create` makes them)"
    )
