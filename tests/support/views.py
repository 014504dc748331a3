"""Fixed jobs to render: values as the core gives them for the worked example, written down by hand."""

from typing import Any

from ettwatch_schemas import COMPONENTS, AttemptSummary, JobSummary, PhaseSpan, Segment

S = 1_000_000
T0 = 1_790_000_000 * S


def _components(*seconds: float) -> dict[str, float]:
    return dict(zip(COMPONENTS, seconds, strict=True))


def summary(**changes: Any) -> JobSummary:
    """The worked example's summary, with `changes`."""
    values: dict[str, Any] = {
        "job": "worked-example",
        "version": 1,
        "rules_version": "1",
        "team": "ads",
        "model": "ctr-a",
        "cluster": "c1",
        "labels": {},
        "status": "succeeded",
        "attempts": 2,
        "gpus": 8,
        "t0": T0,
        "t1": T0 + 6865 * S,
        "e2e_s": 6865.0,
        "effective_s": 3118.333333,
        "ett_pct": 45.42364651128915,
        "tts_s": 480.0,
        "ttr_s": [495.0],
        "recovery_s": 495.0,
        "nof": 1,
        "nof_infra": 1,
        "nof_preempted": 0,
        "components": _components(360.0, 105.0, 370.0, 150.0, 931.666667, 1830.0),
        "stages": {
            "effective_training": 3118.333333,
            "hardware_setup": 105.0,
            "pt2_compilation": 150.0,
            "scheduling": 360.0,
            "shutdown": 30.0,
            "shutdown.model_publish": 1800.0,
            "trainer_init": 40.0,
            "trainer_init.device_init": 30.0,
            "trainer_init.get_first_batch_data": 240.0,
            "trainer_init.process_group_init": 60.0,
            "wasted_training.checkpoint_save": 15.0,
            "wasted_training.data_stall": 200.0,
            "wasted_training.no_progress": 50.0,
            "wasted_training.rework": 666.666667,
        },
        "hidden_s": {"pt2_compilation": 210.0, "trainer_init": 60.0},
        "gpu_effective_s": 24946.666664,
        "gpu_e2e_s": 54920.0,
        "gpu_held_s": 52040.0,
        "unsaved_s": 705.0,
        "flags": [],
    }
    return JobSummary.model_validate(values | changes)


def attempt(number: int, **changes: Any) -> AttemptSummary:
    """An attempt of the worked example, with `changes`."""
    start, first, end = ((60, 540, 2590), (2890, 3035, 6865))[number]
    values: dict[str, Any] = {
        "job": "worked-example",
        "attempt": number,
        "start": T0 + start * S,
        "end": T0 + end * S,
        "open": False,
        "outcome": ("failed", "succeeded")[number],
        "cause": ("hardware", "unknown")[number],
        "exit_code": None,
        "signal": (9, None)[number],
        "message": None,
        "trigger": None,
        "gpus": 8,
        "world_size": 8,
        "trained": True,
        "loop_start": T0 + first * S,
        "first_batch": T0 + first * S,
        "last_advance": T0 + (2540, 5035)[number] * S,
        "loop_end": T0 + (2590, 5035)[number] * S,
        "start_position": (0, 1200)[number],
        "end_position": (2000, 3600)[number],
        "tts_s": (480.0, None)[number],
        "ttr_s": (None, 495.0)[number],
        "recovery_s": (0.0, 495.0)[number],
        "effective_s": (1785.0, 1333.333333)[number],
        "components": _components(0, 0, 0, 0, 0, 0),
        "stages": {},
        "hidden_s": {},
        "unsaved_s": (705.0, 0.0)[number],
        "flags": [],
    }
    return AttemptSummary.model_validate(values | changes)


def segments() -> list[Segment]:
    """The timeline of the worked example; what lies in its loops is told in larger pieces."""
    told = [
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
        (0, "scheduling", 2590, 2890),
        (1, "hardware_setup", 2890, 2935),
        (1, "trainer_init", 2935, 2955),
        (1, "pt2_compilation", 2955, 3015),
        (1, "trainer_init", 3015, 3035),
        (1, "wasted_training.rework", 3035, 3702),
        (1, "effective_training", 3702, 5035),
        (1, "shutdown.model_publish", 5035, 6835),
        (1, "shutdown", 6835, 6865),
    ]
    return [
        Segment("worked-example", number, stage, T0 + start * S, T0 + end * S, 8) for number, stage, start, end in told
    ]


def span(**changes: Any) -> PhaseSpan:
    """A phase of four ranks of which one was late, with `changes`."""
    values: dict[str, Any] = {
        "job": "worked-example",
        "attempt": 0,
        "phase": "trainer_init.process_group_init",
        "start": T0 + 150 * S,
        "end": T0 + 210 * S,
        "ranks": 4,
        "background": False,
        "container": False,
        "charged": 60 * S,
        "hidden": 0,
        "last_rank": 3,
        "behind": 12 * S,
        "open": False,
    }
    return PhaseSpan(**(values | changes))
