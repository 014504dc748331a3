"""One job for tests of the page: the worked example of the rules (seconds after T0, 8 GPUs)."""

from typing import Final

from ettwatch_monitor.api import shapes as s
from support.web_answers import HOUR, NOW, row

T0: Final = NOW - 3 * HOUR
SEGMENTS: Final = [
    (0, "scheduling", 0, 60),
    (0, "hardware_setup", 60, 120),
    (0, "trainer_init.device_init", 120, 150),
    (0, "trainer_init.process_group_init", 150, 210),
    (0, "pt2_compilation", 210, 300),
    (0, "trainer_init.get_first_batch_data", 300, 540),
    (0, "wasted_training.data_stall", 540, 740),
    (0, "effective_training", 740, 1745),
    (0, "wasted_training.checkpoint_save", 1745, 1760),
    (0, "effective_training", 1760, 2540),
    (0, "wasted_training.no_progress", 2540, 2590),
    (1, "scheduling", 2590, 2890),
    (1, "hardware_setup", 2890, 2935),
    (1, "trainer_init", 2935, 2955),
    (1, "pt2_compilation", 2955, 3015),
    (1, "trainer_init", 3015, 3035),
    (1, "wasted_training.rework", 3035, 3702),
    (1, "effective_training", 3702, 5035),
    (1, "shutdown.model_publish", 5035, 6835),
    (1, "shutdown", 6835, 6865),
]
PHASES: Final = [
    (0, "trainer_init.device_init", 120, 150, 8, 3, 2.0),
    (0, "trainer_init.process_group_init", 150, 210, 8, 5, 21.0),
    (0, "pt2_compilation", 210, 510, 8, 0, 0.0),
    (0, "trainer_init.get_first_batch_data", 300, 540, 8, 7, 60.0),
    (0, "wasted_training.checkpoint_save", 1745, 1760, 1, 0, 0.0),
    (1, "trainer_init", 2935, 3035, 1, 0, 0.0),
    (1, "pt2_compilation", 2955, 3015, 1, 0, 0.0),
    (1, "shutdown.model_publish", 5035, 6835, 1, 0, 0.0),
    (0, "wasted_training.upload", 1760, 2100, 1, 0, 0.0),
]


def at(seconds: float) -> int:
    """A moment of the job, in µs."""
    return T0 + round(seconds * 1_000_000)


def _phase(told: tuple[int, str, int, int, int, int, float]) -> s.PhaseRow:
    attempt, phase, start, end, ranks, last, behind = told
    hidden = 210.0 if phase == "pt2_compilation" and attempt == 0 else 0.0
    return s.PhaseRow(
        attempt=attempt,
        phase=phase,
        component=phase.partition(".")[0],
        start_us=at(start),
        end_us=at(end),
        open=False,
        background=phase.endswith("upload"),
        container=phase == "trainer_init",
        ranks=ranks,
        last_rank=last,
        behind_s=behind,
        charged_s=end - start - hidden,
        hidden_s=hidden,
    )


def _attempt(number: int, start: int, end: int, first: int) -> s.AttemptRow:
    stages: dict[str, float] = {}
    for attempt, stage, begin, until in SEGMENTS:
        if attempt == number and begin >= start:
            stages[stage] = stages.get(stage, 0.0) + until - begin
    components: dict[str, float] = {}
    for stage, seconds in stages.items():
        name = stage.partition(".")[0]
        components[name] = components.get(name, 0.0) + seconds
    effective = components.pop("effective_training", 0.0)
    return s.AttemptRow(
        attempt=number,
        start_us=at(start),
        end_us=at(end),
        open=False,
        outcome="failed" if number == 0 else "succeeded",
        cause="network" if number == 0 else None,
        exit_code=1 if number == 0 else 0,
        signal=None,
        message="NCCL <timeout> & more" if number == 0 else None,
        trigger="initial" if number == 0 else "failure",
        gpus=8,
        world_size=8,
        trained=True,
        first_batch_us=at(first),
        duration_s=end - start,
        tts_s=480 if number == 0 else None,
        ttr_s=495 if number == 1 else None,
        recovery_s=495 if number == 1 else 0,
        effective_s=effective,
        unsaved_s=600 if number == 0 else 0,
        components=components,
        stages=stages,
        hidden_s={"pt2_compilation": 210.0} if number == 0 else {},
        flags=[],
    )


def detail(job: str) -> s.JobDetail:
    """GET /jobs/{job}."""
    stages: dict[str, float] = {}
    for _, stage, start, end in SEGMENTS:
        stages[stage] = stages.get(stage, 0.0) + end - start
    components = dict.fromkeys(
        ("scheduling", "hardware_setup", "trainer_init", "pt2_compilation", "wasted_training", "shutdown"), 0.0
    )
    for stage, seconds in stages.items():
        if stage != "effective_training":
            components[stage.partition(".")[0]] += seconds
    return s.JobDetail(
        row=row(job),
        labels={"version": "v2"},
        effective_s=stages["effective_training"],
        ttr_s=[495],
        nof_infra=1,
        nof_preempted=0,
        unsaved_s=600,
        components=components,
        stages=stages,
        stages_gpu_h={stage: seconds * 8 / 3_600 for stage, seconds in stages.items()},
        hidden_s={"pt2_compilation": 210.0},
        owners={"pt2_compilation": s.OwnerOf(team="compilers", system="the compiler", contact="#compilers")},
        flags=["zombie"],
        rules_version="1",
        as_of_us=NOW,
        attempts=[_attempt(0, 60, 2590, 540), _attempt(1, 2890, 6865, 3035)],
        stragglers=[_phase(one) for one in PHASES if one[-1] > 0],
    )


def timeline(job: str) -> s.Timeline:
    """GET /jobs/{job}/timeline."""
    marks = [(540, 0, "first_batch"), (1760, 0, "checkpoint"), (2590, 0, "failure"), (3035, 1, "first_batch")]
    return s.Timeline(
        job=job,
        t0_us=T0,
        t1_us=at(6865),
        from_us=T0,
        to_us=at(6865),
        segments=[
            s.Seg(
                attempt=attempt,
                stage=stage,
                component=stage.partition(".")[0],
                start_us=at(start),
                end_us=at(end),
                gpus=8,
            )
            for attempt, stage, start, end in SEGMENTS
        ],
        phases=[_phase(one) for one in PHASES],
        marks=[s.Mark(at_us=at(when), attempt=attempt, kind=kind, label=kind) for when, attempt, kind in marks],
        truncated=False,
    )
