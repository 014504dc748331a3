"""Advice and what-ifs in words: the units of GPU time, and how long starting and recovering takes."""

from typing import Any

import pytest

from ettwatch_app.render import advice_lines, what_if_lines

_SAMPLE = {"share_pct": 100.0, "jobs": 1, "of_jobs": 1}


def figures(total: float, lost: float, tts: float | None = 1_398.0, ttr: float | None = 12.3) -> dict[str, Any]:
    return {"ett_pct": 59.9, "tts_p50_s": tts, "ttr_mean_s": ttr, "total_gpu_h": total, "lost_gpu_h": lost}


def advice(total: float, gain: float, weeks: float, job: str | None = None, stage: str | None = None) -> list[str]:
    part = {
        **{"remedy": "save_interval", "title": "Save at another interval", "gpu_h": gain, "lost_pct": 5.0},
        **{"gpu_h_week": gain / weeks, "stage_gpu_h": gain / 2 if stage else None, "together": True},
        **{"overlaps": [{"text": "part of it is in another", "gpu_h": gain / 10}], "entries": [0]},
    }
    entry = {
        **part,
        **{"team": "ads", "owner": "trainer", "contact": None, "jobs": 1, "times": 2, "why_confidence": "Why low."},
        **{"arithmetic": [], "assumptions": ["nothing"]},
    }
    told = {
        **{"asked": {"job": job, "stage": stage}, "sample": _SAMPLE, "weeks": weeks, "advice": [entry]},
        **{"base": figures(total, total / 2), "all": figures(total - gain, total / 2 - gain), "groups": [part]},
        "of_stage": {"stage": stage, "lost_gpu_h": gain, "after_gpu_h": gain / 2} if stage else None,
    }
    return list(advice_lines(told, 5))


def test_advice_for_a_fleet_is_in_hours() -> None:
    lines = advice(6_581.8, 72.2, 1.0)
    assert lines[:2] == ["1 of 1 job, 1.00 weeks", lines[1]]
    assert lines[1].endswith("TTS 23m 18s  TTR 12.3 s  GPU-h 6,581.8, lost 3,290.9")
    assert lines[4] == "1. Save at another interval: 72.2 GPU-h (5 % of what was lost), 72.2 a week"
    assert lines[6] == "   part of it is in another (7.2 GPU-h)"


def test_advice_for_a_short_job_is_in_what_says_something() -> None:
    """One job of 47.7 GPU-seconds: no figure is 0.0, and no week is made up from them."""
    lines = advice(47.7 / 3_600, 1.5 / 3_600, 47.7 / 604_800, stage="shutdown")
    assert lines[0] == "1 of 1 job, 47.7 s"
    assert lines[1].endswith("GPU-s 47.7, lost 23.9")
    assert lines[2].endswith("GPU-s 46.2, lost 22.4")
    assert lines[3] == "shutdown: 1.5 GPU-s as it is, 0.8 with all shown"
    assert lines[5] == "1. Save at another interval: 1.5 GPU-s (5 % of what was lost), 0.8 of it in shutdown"
    assert "a week" not in "".join(lines)


def test_what_is_not_known_is_a_dash() -> None:
    told = {
        **{"sample": _SAMPLE, "weeks": 1.0, "changes": [], "jobs_touched": 0, "by_team": {}, "notes": []},
        **{"before": figures(0.0, 0.0, None, None), "after": figures(0.0, 0.0, None, None)},
        **{"saved_gpu_h_week": 0.0, "saved_held_gpu_h_week": 0.0},
    }
    assert list(what_if_lines(told))[1:] == [
        "as it is  ETT 59.9 %  TTS -  TTR -  GPU-h 0.0, lost 0.0",
        "then      ETT 59.9 %  TTS -  TTR -  GPU-h 0.0, lost 0.0",
        "0.0 GPU-h a week come back, 0.0 of them held; it makes a difference to 0 jobs",
    ]


@pytest.mark.parametrize(
    ("weeks", "back"),
    [(2.0, "30.0 GPU-min a week come back"), (0.01, "18.0 GPU-s come back"), (0.099, "3.0 GPU-min come")],
)
def test_a_what_if_of_some_minutes_makes_up_no_week(weeks: float, back: str) -> None:
    told = {
        **{"sample": _SAMPLE, "weeks": weeks, "changes": [], "jobs_touched": 1, "by_team": {"ads": 0.5}, "notes": []},
        **{"before": figures(2.0, 1.0), "after": figures(1.5, 0.5)},
        **{"saved_gpu_h_week": 0.5, "saved_held_gpu_h_week": 0.25},
    }
    lines = list(what_if_lines(told))
    assert lines[3].startswith(back)
    assert lines[4].split() == ["ads", back.split(maxsplit=1)[0]]
