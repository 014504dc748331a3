"""Answers of the API for tests of the page: a small made-up fleet, by the models of the API itself."""

from typing import Any, Final

from ettwatch_monitor.api import shapes as s

HOUR: Final = 3_600_000_000
DAY: Final = 24 * HOUR
NOW: Final = 1_790_000_000_000_000 // HOUR * HOUR
"""2026-09-21, on the hour, in µs."""
BAD_JOB: Final = 'ads/<img src=x onerror="window.hacked=1">'
"""A name that would do harm if it were ever taken for markup; the slash must survive in addresses too."""
COMPONENTS: Final = {
    "scheduling": 90.0,
    "hardware_setup": 30.0,
    "trainer_init": 60.0,
    "pt2_compilation": 140.0,
    "wasted_training": 220.0,
    "shutdown": 25.0,
}
LOST: Final = sum(COMPONENTS.values())


def figures(scale: float = 1.0) -> s.Figures:
    """Figures of a fleet that lost 565 of 2,000 GPU-hours."""
    return s.Figures(
        ett_pct=71.75 / scale,
        ett_pct_jobs=66.2,
        total_gpu_h=2_000,
        effective_gpu_h=2_000 - LOST,
        lost_gpu_h=LOST * scale,
        waited_gpu_h=90,
        held_gpu_h=1_910,
        unsaved_gpu_h=31.4,
        job_h=250,
        jobs=41,
        attempts=63,
        starts=40,
        tts_p50_s=412,
        tts_p90_s=1_211,
        tts_p99_s=3_000,
        recoveries=22,
        ttr_p50_s=655,
        ttr_p90_s=1_900,
        ttr_p99_s=4_000,
        nof=23,
        nof_infra=19,
        nof_preempted=6,
        nof_per_1000_gpu_h=11.5,
        mtbf_h=10.9,
        causes={"hardware": 8, "network": 9, "": 6},
    )


def nothing() -> s.Figures:
    """Figures of a fleet without any job."""
    none = dict.fromkeys(("total_gpu_h", "effective_gpu_h", "lost_gpu_h"), 0.0)
    return figures().model_copy(update={**none, "ett_pct": None})


def stages() -> list[s.StageLoss]:
    """What cost most."""
    told = [
        ("wasted_training.rework", 120.0, "storage"),
        ("pt2_compilation.inductor", 110.0, "compilers"),
        ("wasted_training.data_stall", 100.0, "data"),
        ("scheduling.queue_wait", 90.0, "capacity"),
        ("trainer_init.process_group_init", 60.0, None),
        ("pt2_compilation.recompile", 30.0, "compilers"),
        ("hardware_setup.image_pull", 30.0, "capacity"),
        ("shutdown.model_publish", 25.0, "publishing"),
    ]
    return [
        s.StageLoss(
            stage=stage,
            component=stage.partition(".")[0],
            gpu_h=gpu_h,
            job_h=gpu_h / 8,
            owner=s.OwnerOf(team=team, system="a system", contact=f"#{team}") if team else None,
        )
        for stage, gpu_h, team in told
    ]


def group(key: str | None, share: float) -> s.Group:
    """A team, model or cluster."""
    return s.Group(
        key=key,
        lost_gpu_h=LOST * share,
        before_lost_gpu_h=LOST * share * 0.9,
        figures=figures(),
        components={name: value * share for name, value in COMPONENTS.items()} | {"effective_training": 100.0},
    )


def window(days: int = 1) -> s.Window:
    """The last days."""
    return s.Window(from_us=NOW - days * DAY, to_us=NOW)


def fleet(by: str = "team") -> s.Fleet:
    """GET /fleet."""
    return s.Fleet(
        window=window(),
        total=figures(),
        before=figures(1.1),
        components=COMPONENTS | {"effective_training": 2_000 - LOST},
        stages=stages(),
        by=by,
        groups=[group(f"{by}-ads", 0.5), group(f"{by}-feed", 0.3), group(None, 0.2)],
        statuses={"training": 9, "starting": 2, "succeeded": 30},
        as_of_us=NOW,
    )


def series(of: dict[str, float] | None = None) -> s.Series:
    """GET /fleet/series: a day by hours, with a hole of two hours."""
    return s.Series(window=window(), step_s=3_600, by=None, keys=[None], points=points(of))


def points(of: dict[str, float] | None = None) -> list[s.Point]:
    """A day by hours, with a hole of two hours."""
    return [
        s.Point(
            at_us=NOW - DAY + hour * HOUR,
            key=None,
            ett_pct=60 + hour,
            total_gpu_h=83,
            effective_gpu_h=60,
            lost_gpu_h=LOST / 24,
            waited_gpu_h=4,
            jobs=11,
            nof=1,
            tts_p50_s=400,
            ttr_p50_s=600,
            components={name: value / 24 for name, value in (of or COMPONENTS).items()},
        )
        for hour in range(24)
        if hour not in (7, 8)
    ]


def row(job: str, status: str = "succeeded", lost: float = 12.5) -> s.JobRow:
    """A job of a list: two hours and a bit, on 8 GPUs."""
    return s.JobRow(
        job=job,
        status=status,
        team="team-ads",
        model="ranker",
        cluster="east",
        attempts=2,
        gpus=8,
        t0_us=NOW - 3 * HOUR,
        t1_us=NOW - 3 * HOUR + 6_865_000_000,
        e2e_s=6_865,
        ett_pct=45.424,
        tts_s=480,
        recovery_s=495,
        nof=1,
        total_gpu_h=15.26,
        effective_gpu_h=6.93,
        lost_gpu_h=lost,
        worst_stage="shutdown.model_publish",
        worst_s=1_800,
    )


def job_page(page: int = 1, size: int = 50, total: int = 100_000, sort: str = "-lost", text: str = "") -> s.JobPage:
    """GET /jobs: a page of very many."""
    first = (page - 1) * size
    jobs = [
        row(f"{text or 'job'}-{first + at:06d}", lost=100_000 - first - at) for at in range(min(size, total - first))
    ]
    if page == 1 and not text:
        jobs[0] = row(BAD_JOB)
    return s.JobPage(total=total, page=page, size=size, sort=sort, jobs=jobs)


def overview(job: str, team: str = "team-ads") -> Any:
    """What lists say, for a comparison."""
    return s.Side(
        key=job,
        jobs=1,
        ett_pct=45.4 if job.endswith("a") else 71.0,
        total_gpu_h=15,
        lost_gpu_h=8,
        tts_s=480,
        ttr_s=495,
        nof=1,
        nof_per_1000_gpu_h=66,
        components=COMPONENTS,
        stages={"shutdown.model_publish": 4.0},
    )


def compare(kind: str, a: str, b: str) -> s.Compare:
    """GET /compare."""
    return s.Compare(
        kind=kind,
        label="version" if kind == "version" else None,
        window=None,
        a=overview(a),
        b=overview(b),
        differences=[
            s.Difference(
                stage="pt2_compilation.inductor", a_pct=18.0, b_pct=3.5, delta_pct=-14.5, a_gpu_h=2.7, b_gpu_h=0.5
            ),
            s.Difference(stage="shutdown.model_publish", a_pct=2.0, b_pct=7.0, delta_pct=5.0, a_gpu_h=0.3, b_gpu_h=1.1),
        ],
    )


def team(name: str) -> s.TeamView:
    """GET /teams/{team}."""
    return s.TeamView(
        team=name,
        window=window(),
        total=figures(),
        before=figures(1.1),
        components=COMPONENTS,
        stages=stages(),
        models=[group("ranker", 1.0)],
        clusters=[group("east", 0.7), group("west", 0.3)],
        statuses={"succeeded": 2},
        jobs=[row("job-1"), row(BAD_JOB)],
    )


def owner(name: str) -> s.OwnerView:
    """GET /owners/{team}."""
    return s.OwnerView(
        owner=name,
        contacts=["#compilers"],
        window=window(),
        lost_gpu_h=140,
        before_lost_gpu_h=100,
        share_pct=24.8,
        stages=[one for one in stages() if one.component == "pt2_compilation"],
        teams={"team-ads": 100, "": 40},
        models={"ranker": 140},
        clusters={"east": 140},
        step_s=3_600,
        series=points({"pt2_compilation": 140.0}),
    )
