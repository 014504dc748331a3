"""The ground truth of a simulation, as lines of JSON."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from ettwatch_sim.life.scenario import Scenario
from ettwatch_sim.life.summaries import summaries


def truth(seed: int, scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Yield the scenario, what was injected, and then each start, failure, finished job and hour, as plain values.

    Each says in `is` what it is: `scenario`, `injected`, `start`, `failure`, `job_done` or `hours`.
    """
    yield {"is": "scenario", "seed": seed, **scenario.model_dump(mode="json", exclude_none=True)}
    for each in scenario.injected():
        yield {"is": "injected", **_plain(each)}
    names = {"Start": "start", "Failure": "failure", "JobDone": "job_done", "Hours": "hours"}
    for fact in summaries(seed, scenario):
        yield {"is": names[type(fact).__name__], **_plain(fact)}


def _plain(fact: Any) -> dict[str, Any]:
    return {each.name: getattr(fact, each.name) for each in fields(fact)}
