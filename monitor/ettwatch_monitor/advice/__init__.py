"""Advice: what a fleet could get back, by remedy, team and owner; and what would be if some numbers were others.

For the API (values are ready for JSON; both take seconds, so call them in a thread; both raise AdviceError for a
question that makes no sense, and StoreError):

`advice_of(store, since, until, owners, *, team=None, model=None, cluster=None)` gives `{"window": {"from_us", "to_us"},
"sample": {"jobs", "of_jobs", "events", "share_pct"}, "base": FIGURES, "all": FIGURES or null, "advice": [ENTRY, ...]}`.
ENTRY: `remedy`, `title`, `team`, `owner`, `contact`, `stage`, `gpu_h_week`, `held_gpu_h_week`, `jobs`, `times`,
`confidence` (high, medium, low), `error_pct`, `why`, `arithmetic` [str], `assumptions` [str], `before` and `after`
FIGURES of that team, `what_if` (a body for `what_if_of` that gives the same).
FIGURES: `jobs`, `ett_pct`, `tts_p50_s`, `ttr_mean_s`, `total_gpu_h`, `held_gpu_h`, `effective_gpu_h`, `lost_gpu_h`,
`components` {name: gpu_h}.

`what_if_of(store, since, until, body)`: `body` is `{"changes": [CHANGE, ...], "team"?, "model"?, "cluster"?}`.
CHANGE is a text as of `ettwatch advise --what-if`, or an object with one of `stage` + `factor`, `save_interval_s`
(number or "best"), `save_blocking`, `detection_s`, `remedy`; and `team`, `model`, `cluster`, `attempts` (all, first,
later). The answer: `{"window", "sample", "changes": [str], "before": FIGURES, "after": FIGURES, "saved_gpu_h_week",
"saved_held_gpu_h_week", "by_team": {team: gpu_h_week}, "replay_error_pct", "notes": [str]}`.
"""

from ettwatch_monitor.advice.advise import Advice, Entry, advise
from ettwatch_monitor.advice.answer import advice_of, parse_body, what_if_of
from ettwatch_monitor.advice.change import Change
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
    "Advice",
    "AdviceError",
    "Change",
    "Entry",
    "Figures",
    "Fleet",
    "Outcome",
    "Remedy",
    "Replays",
    "Sample",
    "advice_of",
    "advise",
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
