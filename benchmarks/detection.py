"""Detection: how soon a regression is found, and how often one is that is none. Beside it what people set up otherwise.

Ten fleets of eight teams and 13 weeks each, looked at every six hours (every hour where a team got worse).
`python benchmarks/detection.py [SEEDS]`.
"""

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from _common import save
from _detection_bound import bound
from _detection_fleet import TEAMS
from _detection_runs import THRESHOLDS, Quiet, Trial, quiet, trial
from ettwatch_monitor.alerts.detect import FLEET

EFFECTS = {"tts": (1.1, 1.15, 1.2, 1.3, 1.5), "nof": (1.5, 2.0, 3.0)}
WITHIN = {"tts": 100, "nof": 40}
ASKED = {"tts": 1.2, "nof": 2.0}
OTHERS = (*(f"threshold x{factor}" for factor in THRESHOLDS), "3 sigma")


def main(seeds: int) -> None:
    begin = time.process_time()
    gc.disable()  # millions of small values and no cycles: looking for some takes most of the time
    runs = []
    for seed in range(1, seeds + 1):
        runs.append(quiet(seed))
        told = sum("team" in one.key.labels for one in runs[-1].told)
        print(f"fleet {seed}: {told} false alerts of {TEAMS} teams", file=sys.stderr, flush=True)
    quarters = TEAMS * len(runs)
    false = false_alerts(runs, quarters)
    table, rows = [], {}
    for metric, effects in EFFECTS.items():
        for effect in effects:
            numbers = range(TEAMS) if effect == ASKED[metric] else range(0, TEAMS, 3)
            trials = [trial(run, number, metric, effect) for run in runs for number in numbers]
            delays = sorted(10**6 if one.delay is None else one.delay for one in trials)
            print(f"{metric} x{effect}: {delays}", file=sys.stderr, flush=True)
            for way in ("ettwatch", *OTHERS):
                rows[f"{metric} x{effect} {way}"] = row = summed(way, metric, trials, runs, quarters)
                table.append((metric, effect, way, row))
    show(table)
    team_false = false["ettwatch, teams"]
    asked = {metric: rows[f"{metric} x{effect} ettwatch"] for metric, effect in ASKED.items()}
    results = {
        "data": {
            "seeds": len(runs),
            "team quarters": quarters,
            "log standard deviation of TTS, least": min(spread for run in runs for spread in run.spreads),
            "tests in a round": int(np.median([len(looks) for run in runs for looks in run.looks.values()])),
        },
        "false alerts with nothing injected, per team and quarter": false,
        "by effect": rows,
        "failures x2, the best test of a rate that is known": [
            bound(threshold, np.random.default_rng(1))._asdict() for threshold in (4.5, 5.0, 5.5, 6.0)
        ],
        "cost": {"CPU seconds": time.process_time() - begin},
    }
    limits = {
        "TTS +20 % within 100 starts, 95 %": asked["tts"]["found within"] >= 0.95,
        "failures x2 within 40, in nine of ten cases": asked["nof"]["found within"] >= 0.9,
        "at most one false alert a team and quarter": team_false <= 1,
    }
    save("detection", results, limits)


def false_alerts(runs: Sequence[Quiet], quarters: int) -> dict[str, float]:
    """False alerts per team and quarter: of the teams' own streams by metric, and of the others."""
    told = [one for run in runs for one in run.told]
    team = [one for one in told if one.key.labels.get("team")]
    counts: dict[str, float] = {"ettwatch, teams": len(team) / quarters}
    for name in sorted({one.key.metric for one in team}):
        counts[f"ettwatch, {name}"] = sum(one.key.metric == name for one in team) / quarters
    counts["ettwatch, most of one team"] = most_of_one(runs)
    counts["ettwatch, fleet (per fleet)"] = sum(one.key.scope == FLEET for one in told) / len(runs)
    counts["ettwatch, owners (per fleet)"] = sum("owner" in one.key.labels for one in told) / len(runs)
    for way in OTHERS:
        for metric in EFFECTS:
            counts[f"{way}, {metric}"] = sum(run.rivals[way, metric] for run in runs) / quarters
    return counts


def most_of_one(runs: Sequence[Quiet]) -> int:
    """Return the most false alerts that one team had in its quarter."""
    counts: dict[tuple[int, str], int] = {}
    for run in runs:
        for one in run.told:
            of = (run.seed, one.key.labels.get("team", ""))
            counts[of] = counts.get(of, 0) + bool(of[1])
    return max(counts.values(), default=0)


def summed(way: str, metric: str, trials: Sequence[Trial], runs: Sequence[Quiet], quarters: int) -> dict[str, Any]:
    """Delay and precision of one way at one size of the effect."""
    delays = [one.delay if way == "ettwatch" else one.truly[way] for one in trials]
    late = np.array([10**6 if delay is None else delay for delay in delays])
    own = [one for run in runs for one in run.told if one.key.labels.get("team")]
    false = len(own) if way == "ettwatch" else sum(run.rivals[way, metric] for run in runs)
    found = float(np.mean([delay is not None for delay in delays]))
    median, high = (float(value) if value < 10**6 else None for value in np.percentile(late, [50, 95], method="higher"))
    row = {
        "trials": len(trials),
        "found": found,
        "found within": float(np.mean(late <= WITHIN[metric])),
        "delay median": median,
        "delay p95": high,
        "precision": found / (found + false / quarters) if found else 0.0,
    }
    if way == "ettwatch":
        hours = [one.hours for one in trials if one.hours is not None]
        off = [abs(one.off) for one in trials if one.off is not None]
        row["hours median"] = float(np.median(hours)) if hours else None
        row["onset off by hours, median"] = float(np.median(off)) if off else None
    return row


def show(table: Sequence[tuple[str, float, str, Mapping[str, Any]]]) -> None:
    """Print delay and precision against the size of the effect."""
    head = f"{'metric':<8}{'effect':>8}  {'way':<16}{'found':>7}{'in time':>9}{'median':>8}{'p95':>7}{'precision':>11}"
    print(head + "\n" + "-" * len(head))
    for metric, effect, way, row in table:
        median, high = (f"{row[name]:.0f}" if row[name] is not None else "-" for name in ("delay median", "delay p95"))
        print(
            f"{metric:<8}{effect:>7.2f}x  {way:<16}{row['found']:>7.0%}{row['found within']:>9.0%}"
            f"{median:>8}{high:>7}{row['precision']:>11.0%}"
        )
    print(f"delay in starts (tts) and failures (nof) after the onset; in time: within {WITHIN}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
