"""What the brokers tell of topics, as `check` takes it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ettwatch_faust.brokers import BrokersError
from ettwatch_faust.check import Seen
from ettwatch_faust.topics import TopicSpec

_UNKNOWN_TOPIC: Final = 3


def look(client: Any, plan: Sequence[TopicSpec], *, configs: bool = True) -> dict[str, Seen]:
    """Ask for the topics of the plan; those that are not there are left out.

    Args:
        client: From `admin`, within its block.
        plan: Whose topics.
        configs: Whether to ask for their settings too, which needs the right DESCRIBE_CONFIGS.

    Raises BrokersError where they do not tell of a topic.
    """
    from kafka.errors import for_code

    told = client.describe_topics([spec.name for spec in plan])
    there: dict[str, Sequence[Mapping[str, Any]]] = {}
    for topic in told:
        name, code = topic["name"], topic["error_code"]
        if code == 0:
            there[name] = topic["partitions"]
        elif code != _UNKNOWN_TOPIC:
            raise BrokersError(f"the brokers do not tell of {name}: {for_code(code).__name__}")
    settings = _configs(client, list(there)) if configs and there else {}
    return {
        name: Seen(
            len(partitions),
            min((len(partition["replica_nodes"]) for partition in partitions), default=0),
            settings.get(name, {}),
        )
        for name, partitions in there.items()
    }


def _configs(client: Any, topics: Sequence[str]) -> dict[str, dict[str, str]]:
    from kafka.admin import ConfigResource

    resources = [ConfigResource("TOPIC", name) for name in topics]
    told = client.describe_configs(resources, config_filter="all").get("topic", {})
    return {name: {key: str(config["value"]) for key, config in of.items()} for name, of in told.items()}
