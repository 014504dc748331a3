"""What the objects of all kinds have in common: names, times, conditions, GPUs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ettwatch_sources.kubernetes.words import Word
from ettwatch_sources.times import NoTime, from_text
from ettwatch_sources.watch.facts import Submitted

PREFIX: Final = "ettwatch.io/"
"""Labels and annotations that begin like this name job, team and model."""

_GPU: Final = re.compile(r"(?:^|/)gpu$|^(?:nvidia\.com/(?:gpu|mig-.+)|amd\.com/gpu|habana\.ai/gaudi|google\.com/tpu)$")

Object = Mapping[str, Any]
"""An object of the API, as JSON."""


class Condition(NamedTuple):
    """A condition of an object, or a step of its life."""

    type: str
    status: str
    reason: str
    message: str
    ts: int | None


class Seen(NamedTuple):
    """Where and when an object is seen."""

    cluster: str | None
    now: int
    """The watcher's clock (µs): for what has no time of its own."""


class Unknown:
    """Words that are in no table, with how often they were seen."""

    def __init__(self) -> None:
        self.words: dict[str, int] = {}

    def of(self, table: Mapping[str, Word], what: str, word: str) -> Word | None:
        """Return what a word means; None, and a note of it, where it is in no table."""
        found = table.get(word)
        if found is None and word and len(self.words) < 1000:
            name = f"{what}: {word[:120]}"
            self.words[name] = self.words.get(name, 0) + 1
        return found


def part(value: object, *names: str) -> Any:
    """Return what lies under a path of names; an empty mapping where something on the way is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return {} if value is None else value


def inner(value: object, *names: str) -> Object:
    """Return the mapping that lies under a path of names; an empty one where there is none."""
    found = part(value, *names)
    return found if isinstance(found, Mapping) else {}


def listed(value: object, *names: str) -> list[Object]:
    """Return the mappings in the list that lies under a path of names; none where there is no list."""
    found = part(value, *names)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def time_of(value: object) -> int | None:
    """Read a time of the API; None where there is none."""
    if not isinstance(value, str):
        return None
    try:
        return from_text(value, None).ts
    except NoTime:
        return None


def uid_of(item: Object) -> str:
    """Return the uid of an object; empty where it has none."""
    return str(part(item, "metadata", "uid") or "")


def place_of(item: Object) -> tuple[str, str]:
    """Return namespace and name."""
    return str(part(item, "metadata", "namespace") or ""), str(part(item, "metadata", "name") or "")


def conditions(item: Object) -> Iterator[Condition]:
    """Yield the conditions of an object."""
    for one in listed(item, "status", "conditions"):
        yield Condition(
            str(one.get("type") or ""),
            str(one.get("status") or ""),
            str(one.get("reason") or ""),
            str(one.get("message") or ""),
            time_of(one.get("lastTransitionTime")),
        )


def true(item: Object, kind: str) -> Condition | None:
    """Return a condition that holds and has a time; None where it does not."""
    return next((c for c in conditions(item) if c.type == kind and c.status == "True" and c.ts is not None), None)


def told(item: Object, name: str) -> str | None:
    """Return what a label or an annotation of ours says."""
    for where in ("annotations", "labels"):
        text = inner(item, "metadata", where).get(PREFIX + name)
        if isinstance(text, str) and text:
            return text
    return None


def submitted(item: Object, cluster: str | None, gpus: int | None, kind: str) -> Submitted | None:
    """Return that the job of an object is there; None where the object has no uid or no time."""
    uid, created = uid_of(item), time_of(part(item, "metadata", "creationTimestamp"))
    if not uid or created is None:
        return None
    namespace, name = place_of(item)
    queue = inner(item, "metadata", "labels").get("kueue.x-k8s.io/queue-name")
    extra = {"namespace": namespace, "kubernetes_kind": kind, "queue": str(queue or "")}
    return Submitted(
        key=uid,
        job=told(item, "job") or f"{namespace}/{name}/{uid[:8]}",
        ts=created,
        # It may run from its creation on: all that it waits for is scheduling.
        eligible=created,
        team=told(item, "team") or namespace or None,
        model=told(item, "model"),
        cluster=cluster,
        gpus=gpus,
        labels=tuple((key, value) for key, value in extra.items() if value),
    )


def gpus_of_pod(spec: object) -> int:
    """Return the GPUs that a pod of this spec asks for."""
    return sum(gpus_of(part(container, "resources")) for container in listed(spec, "containers"))


def gpus_of(resources: object) -> int:
    """Return the GPUs in the requirements of a container."""
    wanted = {**inner(resources, "requests"), **inner(resources, "limits")}
    amounts = (str(amount) for name, amount in wanted.items() if _GPU.search(str(name)))
    return sum(int(amount) for amount in amounts if amount.isdecimal() and len(amount) < 6)


def said(reason: str, message: str) -> str:
    """Return a reason and its message as one text."""
    return f"{reason}: {message}" if reason and message else reason or message


def number(value: object, default: int = 0) -> int:
    """Return a whole number, or the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
