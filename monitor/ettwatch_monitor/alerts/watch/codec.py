"""Episodes as JSON, for the file that remembers them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from ettwatch_monitor.alerts.detect import Effect, Incident, StreamKey
from ettwatch_monitor.alerts.watch.explain import Part

__all__ = ["incident_from", "incident_to", "key_from", "parts_from", "parts_to"]


def incident_to(incident: Incident) -> str:
    """Return an episode as JSON."""
    return json.dumps(asdict(incident), ensure_ascii=False, separators=(",", ":"))


def incident_from(text: str) -> Incident:
    """Return the episode of a JSON text. Raises ValueError, KeyError or TypeError for another text."""
    told: dict[str, Any] = json.loads(text)
    effect = told.pop("effect")
    key, also = told.pop("key"), told.pop("also")
    if effect is not None:
        effect["low"], effect["high"] = tuple(effect["low"]), tuple(effect["high"])
    return replace(
        Incident(key=key_from(key), **told),
        effect=None if effect is None else Effect(**effect),
        also=tuple(key_from(one) for one in also),
    )


def key_from(told: Sequence[Any]) -> StreamKey:
    """Return the key of what JSON makes of one."""
    metric, scope = told
    return StreamKey(str(metric), tuple((str(name), str(value)) for name, value in scope))


def parts_to(parts: Sequence[Part]) -> str:
    """Return what explains an episode as JSON."""
    return json.dumps([asdict(part) for part in parts], ensure_ascii=False, separators=(",", ":"))


def parts_from(text: str) -> tuple[Part, ...]:
    """Return what explains an episode."""
    return tuple(Part(**one) for one in json.loads(text))
