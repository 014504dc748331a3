"""Advice: what a fleet could get back, by remedy, team and owner; and what would be if some numbers were others.

For the API (values are ready for JSON; both take seconds, so call them in a thread; both raise AdviceError for a
question that makes no sense, and StoreError):

`advice_of(store, since, until, owners, *, team=None, model=None, cluster=None, about=About(job, stage, owner))` gives
`{"window": {"from_us", "to_us"}, "sample": {"jobs", "of_jobs", "events", "share_pct"}, "asked": {"team", "model",
"cluster", "owner", "stage", "job"}, "base": FIGURES, "all": FIGURES, "of_stage": {"stage", "lost_gpu_h",
"after_gpu_h"} or null, "groups": [GROUP, ...], "advice": [ENTRY, ...]}`. docs/advice.md says what is in a GROUP and an
ENTRY.
FIGURES: `jobs`, `ett_pct`, `tts_p50_s`, `ttr_mean_s`, `total_gpu_h`, `held_gpu_h`, `effective_gpu_h`, `lost_gpu_h`,
`components` {name: gpu_h}.

`what_if_of(store, since, until, body)`: `body` is `{"changes": [CHANGE, ...], "team"?, "model"?, "cluster"?}`.
CHANGE is a text as of `ettwatch advise --what-if`, or an object with one of `stage` + `factor`, `save_interval_s`
(number or "best"), `save_blocking`, `detection_s`, `remedy`; and `team`, `model`, `cluster`, `attempts` (all, first,
later). The answer: `{"window", "sample", "changes": [str], "before": FIGURES, "after": FIGURES, "saved_gpu_h_week",
"saved_held_gpu_h_week", "by_team": {team: gpu_h_week}, "replay_error_pct", "notes": [str]}`.
"""

from ettwatch_monitor.advice.advise import About, advise
from ettwatch_monitor.advice.answer import NoJobError, advice_of, asked_of, checked, parse_body, what_if_of
from ettwatch_monitor.advice.change import Change
from ettwatch_monitor.advice.entry import Advice, Entry, Gainer, Group, OfStage, Overlap, Sum
from ettwatch_monitor.advice.figures import Figures, figures
from ettwatch_monitor.advice.fleet import Fleet
from ettwatch_monitor.advice.plain import plain_advice, plain_figures, plain_what_if
from ettwatch_monitor.advice.read import Sample, read_fleet
from ettwatch_monitor.advice.remedies import BY_NAME, REMEDIES, Remedy
from ettwatch_monitor.advice.replays import Outcome, Replays
from ettwatch_monitor.advice.words import AdviceError, described, parse_change

__all__ = [
    "BY_NAME",
    "REMEDIES",
    "About",
    "Advice",
    "AdviceError",
    "Change",
    "Entry",
    "Figures",
    "Fleet",
    "Gainer",
    "Group",
    "NoJobError",
    "OfStage",
    "Outcome",
    "Overlap",
    "Remedy",
    "Replays",
    "Sample",
    "Sum",
    "advice_of",
    "advise",
    "asked_of",
    "checked",
    "described",
    "figures",
    "parse_body",
    "parse_change",
    "plain_advice",
    "plain_figures",
    "plain_what_if",
    "read_fleet",
    "what_if_of",
]
