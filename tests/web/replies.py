"""What a healthy fleet answers, and what one that never ran a job: those of `support.web_server`, and what is newer."""

from typing import Any, Final

from ettwatch_monitor.api import shapes as s
from support import web_advice
from support.web_answers import HOUR, NOW, window
from support.web_server import Answer, Question
from support.web_server import empty as basically_empty
from support.web_server import usual as basically

USUAL: Final = {
    "scheduling": 60.0,
    "hardware_setup": 50.0,
    "trainer_init.device_init": 30.0,
    "trainer_init.process_group_init": 30.0,
    "pt2_compilation": 20.0,
    "trainer_init.get_first_batch_data": 200.0,
}


def start(job: str, tts_s: float, begun: int = NOW - 5 * HOUR) -> s.StartRow:
    """Another start."""
    return s.StartRow(job=job, t0_us=begun, gpus=8, tts_s=tts_s)


def usual_start(job: str) -> s.UsualStart:
    """GET /jobs/{job}/usual: eight others, which compiled quickly."""
    return s.UsualStart(
        job=job,
        model="ranker",
        window=window(7),
        starts=8,
        tts_p50_s=330.0,
        stages=USUAL,
        warm=6,
        cold=2,
        caches={"pt2_compilation": "cold"},
        middle=start("job-middle", 330.0),
        recent=[start("job-new", 300.0, NOW - HOUR), start("job-middle", 330.0)],
    )


def advice(asked: dict[str, str] | None = None) -> dict[str, Any]:
    """GET /advice: two remedies, of one team and of two; a stage or a job may be asked for."""
    stage = (asked or {}).get("stage")
    told = web_advice.advice()
    cache, publish = told["advice"]
    entries = [
        _entry(
            cache, 17.2, 3.0, stage, hosts=[{"host": "east-h7", "attempts": 5, "jobs": ["job-1", "job-2", "job-3"]}]
        ),
        _entry(publish, 3.6, 0.6, stage),
        _entry(publish | {"team": "team-feed"}, 1.1, 0.2, stage),
    ]
    groups = [_group([0], entries), _group([1, 2], entries)]
    of = {"stage": stage, "lost_gpu_h": 140.0, "after_gpu_h": 120.0} if stage else None
    return told | {"of_stage": of, "replay_error_pct": 0.8, "groups": groups, "advice": entries}


def _entry(told: dict[str, Any], gpu_h: float, lost_pct: float, stage: str | None, **more: Any) -> dict[str, Any]:
    change = {"remedy": told["remedy"], "team": told["team"]}
    other = {
        "remedy": "cache_per_job",
        "title": "keep it",
        "how": "contains",
        "gpu_h": 1.0,
        "text": "contains: keep it",
    }
    return (
        told
        | {
            "gpu_h": gpu_h,
            "held_gpu_h": gpu_h,
            "lost_pct": lost_pct,
            "stage_gpu_h": gpu_h / 2 if stage else None,
            "why_confidence": f"Why {told['confidence']} confidence: {told['why']}",
            "sum": {
                "lost_before_gpu_h": 565.0,
                "lost_after_gpu_h": 565.0 - gpu_h,
                "less_lost_gpu_h": gpu_h,
                "faster_gpu_h": 0.0,
                "gpu_h": gpu_h,
                "weeks": 1.0,
                "partly": 0,
                "scale": 1.0,
            },
            "overlaps": [other] if told["remedy"] == "compile_cache" else [],
            "together": True,
            "jobs_named": [{"job": "job-1", "gpu_h": 9.0, "times": 4}, {"job": "job-2", "gpu_h": 8.2, "times": 3}],
            "hosts": [],
            "what_if": {"changes": [change]},
        }
        | more
    )


def _group(numbers: list[int], entries: list[dict[str, Any]]) -> dict[str, Any]:
    some = [entries[number] for number in numbers]
    same = ("remedy", "title", "stage", "confidence", "overlaps", "together", "stage_gpu_h", "lost_pct")
    summed = ("gpu_h", "held_gpu_h", "gpu_h_week", "held_gpu_h_week", "jobs", "times")
    return (
        {name: some[0][name] for name in same}
        | {name: sum(one[name] for one in some) for name in summed}
        | {"owners": sorted({one["owner"] for one in some}), "entries": numbers}
    )


def usual(question: Question) -> Answer:
    """Return what a healthy fleet answers."""
    match question.parts:
        case ("jobs", job, "usual"):
            return usual_start(job)
        case ("advice",):
            return advice(question.asked)
        case ("alerts",) if question.asked.get("status"):
            told = basically(question)
            assert isinstance(told, s.Alerts)
            wanted = question.asked["status"]
            return told.model_copy(update={"alerts": [one for one in told.alerts if one.status == wanted]})
    return basically(question)


NOTHING_USUAL: Final[dict[str, Any]] = {
    "starts": 0,
    "tts_p50_s": None,
    "stages": {},
    "warm": 0,
    "cold": 0,
    "middle": None,
    "recent": [],
}
"""What is told of the usual start where no other job of the model began."""


def empty(question: Question) -> Answer:
    """Return what a fleet answers that never ran a job."""
    match question.parts:
        case ("jobs", job, "usual"):
            return usual_start(job).model_copy(update=NOTHING_USUAL | {"caches": {}})
        case ("advice",):
            return advice() | {"advice": [], "groups": []}
    return basically_empty(question)


def tiny(question: Question) -> Answer:
    """Return what is answered for a fleet of one small job: every amount of GPU time is an hour's ten-thousandth."""
    told = usual(question)
    answer: Answer = _tiny(told if isinstance(told, dict) else told.model_dump(mode="json"))
    return answer


AMOUNTS: Final = ("components", "stages_gpu_h")


def _tiny(told: Any, *, amount: bool = False) -> Any:
    match told:
        case dict():
            return {
                name: _tiny(value, amount=amount or name in AMOUNTS or (name.endswith("gpu_h") and "per" not in name))
                for name, value in told.items()
            }
        case list():
            return [_tiny(value, amount=amount) for value in told]
        case float() | int() if amount:
            return told / 10_000
        case _:
            return told
