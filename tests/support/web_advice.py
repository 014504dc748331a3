"""Advice for tests of the page, as docs and `ettwatch_monitor.advice` say what it looks like."""

from typing import Any

from support.web_answers import COMPONENTS, DAY, LOST, NOW


def figures(lost: float) -> dict[str, Any]:
    """Figures of a fleet of 2,000 GPU-hours."""
    return {
        "jobs": 41,
        "ett_pct": 100 - lost / 20,
        "tts_p50_s": 412.0,
        "ttr_mean_s": 655.0,
        "total_gpu_h": 2_000.0,
        "held_gpu_h": 1_910.0,
        "effective_gpu_h": 2_000 - lost,
        "lost_gpu_h": lost,
        "components": COMPONENTS,
    }


def _window() -> dict[str, Any]:
    return {
        "window": {"from_us": NOW - 7 * DAY, "to_us": NOW},
        "sample": {"jobs": 40, "of_jobs": 41, "events": 12_345, "share_pct": 98.5},
    }


def advice() -> dict[str, Any]:
    """GET /advice."""
    entry = {
        "remedy": "compile_cache",
        "title": "Share the compile cache between attempts",
        "team": "team-ads",
        "owner": "compilers",
        "contact": "#compilers",
        "stage": "pt2_compilation",
        "gpu_h_week": 120.5,
        "held_gpu_h_week": 120.5,
        "jobs": 12,
        "times": 31,
        "confidence": "high",
        "error_pct": 1.2,
        "why": "31 compilations had keys that an earlier attempt had compiled already.",
        "arithmetic": ["31 × 14 min × 16.7 GPUs = 120.5 GPU-hours"],
        "assumptions": ["Loading from the cache takes 20 s, as in the 9 hits seen."],
        "before": figures(LOST),
        "after": figures(LOST - 120.5),
        "what_if": {"changes": [{"remedy": "compile_cache"}], "team": "team-ads"},
    }
    second = entry | {
        "remedy": "publish",
        "title": "Publish after the GPUs are released",
        "stage": "shutdown.model_publish",
        "owner": "publishing",
        "gpu_h_week": 25.0,
        "confidence": "medium",
    }
    return _window() | {"base": figures(LOST), "all": figures(LOST - 140), "advice": [entry, second]}


def what_if(body: dict[str, Any]) -> dict[str, Any]:
    """POST /advice/what-if."""
    return _window() | {
        "changes": [str(one) for one in body["changes"]],
        "before": figures(LOST),
        "after": figures(LOST - 70),
        "saved_gpu_h_week": 70.0,
        "saved_held_gpu_h_week": 70.0,
        "by_team": {"team-ads": 50.0, "team-feed": 20.0},
        "replay_error_pct": 0.8,
        "notes": ["Jobs that run now are left out."],
    }
