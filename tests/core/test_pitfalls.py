"""Inputs on which trackers were seen to fail, each with the answer worked out by hand."""

import pytest

from support.story import START, Story


def test_an_outage_between_two_runs_is_not_productive() -> None:
    """Steps 0 to 4, 103 s down, resume at 5."""
    story = Story().started(0).trains(1)
    for i in range(1, 6):
        story.progress(1 + 3 * i, i)
    story.started(119, 1).trains(120, 5, 1)
    for i in range(1, 6):
        story.progress(120 + 3 * i, 5 + i, 1)
    story.trained(135, 10, 1).ended(135, "succeeded", 1).over(135)
    got = story.at().summary
    assert got.effective_s == 30
    assert got.ett_pct == pytest.approx(100 * 30 / 135)
    assert got.components["scheduling"] == 103
    assert got.ttr_s == [104]


def test_two_ranks_that_tell_everything_are_one_attempt_and_one_failure() -> None:
    story = Story().submitted()
    for rank in (0, 1):
        story.started(0, rank=rank).phase(1, 11 + rank, "pt2_compilation", rank=rank)
        story.trains(12, rank=rank).progress(22, 10, rank=rank).progress(32, 20, rank=rank)
        story.ended(33 + rank, "failed", rank=rank, cause="network")
    got = story.at(40).summary
    assert (got.nof, got.attempts) == (1, 1)
    assert got.components["pt2_compilation"] == 11
    assert got.effective_s == 20


def test_ranks_that_compile_at_once_cost_wall_time_once() -> None:
    story = Story().started(0)
    for rank in range(32):
        story.phase(1, 61, "pt2_compilation", rank=rank)
    assert story.trains(61).progress(71, 10).stages()["pt2_compilation"] == 60


def test_a_restart_from_nothing_is_all_rework() -> None:
    story = Story().started(0).trains(0).progress(100, 100).ended(100, "failed", cause="hardware")
    story.started(110, 1).trains(110, 0, 1).progress(210, 100, 1).progress(310, 200, 1)
    story.trained(310, 200, 1).ended(310, "succeeded", 1).over(310)
    got = story.at().summary
    assert got.stages["wasted_training.rework"] == 100
    assert got.effective_s == 200
    assert got.unsaved_s == 100


def test_two_deaths_in_start_up_are_two_failures() -> None:
    story = (
        Story().started(0).ended(10, "failed", cause="config").started(20, 1).ended(30, "failed", 1, cause="network")
    )
    got = story.at(40).summary
    assert (got.nof, got.nof_infra, got.tts_s, got.ttr_s, got.recovery_s) == (2, 1, None, [], 30)


def test_one_long_step_among_short_ones_is_a_hang() -> None:
    story = Story().started(0).trains(0, report_every_s=10)
    at = 0.0
    for i in range(1, 11):
        at += 603 if i == 5 else 3
        story.progress(at, i)
    assert story.stages() == {"effective_training": 27, "wasted_training.hang": 603}


def test_sparse_reports_lose_nothing() -> None:
    """Every tenth step is told, with nothing declared about how often."""
    story = Story().started(0).trains(0, report_every_s=None)
    for i in range(1, 6):
        story.progress(600 * i, 10 * i)
    assert story.stages() == {"effective_training": 3000}


def test_evaluation_beside_another_phase_is_counted_once() -> None:
    story = Story().started(0).trains(0).progress(1, 1)
    story.phase(2, 8, "wasted_training.evaluation").phase(3, 9, "wasted_training.checkpoint_save")
    story.progress(11, 2).trained(11, 2).ended(11, "succeeded").over(11)
    assert story.segments() == [
        (0, "effective_training", 0, 2),
        (0, "wasted_training.evaluation", 2, 3),
        (0, "wasted_training.checkpoint_save", 3, 9),
        (0, "effective_training", 9, 11),
    ]
    assert story.at().summary.hidden_s == {"wasted_training.evaluation": 5}


def test_a_phase_across_reports_is_counted_once() -> None:
    story = (
        Story().started(0).trains(0).progress(10, 10).phase(8, 14, "wasted_training.checkpoint_save").progress(20, 20)
    )
    assert story.stages() == {"effective_training": 14, "wasted_training.checkpoint_save": 6}


def test_a_save_inside_work_that_is_lost_is_charged_once() -> None:
    story = (
        Story()
        .started(0)
        .trains(0)
        .progress(50, 50)
        .phase(60, 70, "wasted_training.checkpoint_save")
        .progress(100, 100)
    )
    story.ended(100, "failed").started(110, 1).trains(110, 0, 1).progress(210, 100, 1)
    got = story.at().summary
    assert got.stages["wasted_training.checkpoint_save"] == 10
    assert got.unsaved_s == 90
    assert got.e2e_s == 210


def test_nested_compile_seconds_are_not_added_up() -> None:
    story = Story().started(0).phase(0, 10, "pt2_compilation", span="outer")
    story.phase(1, 9, "pt2_compilation.inductor", parent="outer").trains(10).progress(20, 10)
    got = story.at().summary
    assert got.components["pt2_compilation"] == 10
    assert got.stages["pt2_compilation.inductor"] == 8


def test_a_new_stage_of_a_known_component_is_its_component_s() -> None:
    story = Story().started(0).phase(0, 10, "trainer_init.brand_new_thing").trains(10).progress(20, 10)
    assert story.at().summary.components["trainer_init"] == 10
    assert story.stages()["trainer_init.brand_new_thing"] == 10


def test_a_killed_process_leaves_its_open_phase_in_the_timeline() -> None:
    story = Story().started(0).phase(5, None, "trainer_init.checkpoint_load").ended(65, "failed", signal=9)
    assert story.stages(65) == {"hardware_setup": 5, "trainer_init.checkpoint_load": 60}


def test_a_counter_that_resets_makes_no_negative_progress() -> None:
    story = Story().started(0).trains(0, 576_777_000, step=1).progress(10, 576_777_624, step=2)
    story.progress(20, 15_456, step=3).progress(30, 16_456, step=4)
    got = story.at().summary
    assert got.flags == ["position_reset"]
    assert got.stages == {"effective_training": 30}


def test_hosts_with_skewed_clocks_do_not_make_negative_time() -> None:
    """The launcher's clock is 11.56 s ahead of the trainer's."""
    story = Story().started(11.56).phase(3, 8, "trainer_init.device_init").trains(9).progress(19, 10).progress(29, 20)
    story.ended(41.56, "succeeded", source="launcher").over(41.56)
    got = story.at().summary
    assert got.e2e_s == 30
    assert got.stages == {"effective_training": 17.44, "shutdown": 12.56}


def test_a_phase_that_ends_before_it_starts_is_flagged_and_has_no_length() -> None:
    story = Story().started(0).phase(8, 5, "trainer_init.device_init").trains(10).progress(20, 10)
    got = story.at().summary
    assert got.flags == ["negative_span"]
    assert got.stages == {"hardware_setup": 10, "effective_training": 10}


def test_of_early_starts_of_the_loop_the_one_told_first_counts() -> None:
    """A trainer whose clock is behind that of the scheduler begins two epochs before its attempt."""
    story = Story().started(20).trains(5, 73).trains(10, 598).progress(30, 100).progress(40, 127)
    got = story.at().summary
    assert (got.effective_s, got.status, got.flags) == (20, "training", [])


def test_of_early_ends_of_the_loop_the_one_told_last_counts() -> None:
    story = Story().started(20).trains(1, 5).trained(5, 3).trained(10, 12).ended(30, "succeeded")
    got = story.at().summary
    assert (got.tts_s, got.stages) == (0, {"shutdown": 10})


def test_of_two_ends_of_the_loop_at_once_the_larger_position_counts() -> None:
    story = Story().started(0).trains(10, 8).trained(20, 8).trained(20, 12).ended(30, "succeeded")
    assert story.at().summary.effective_s == 10


def test_of_two_waits_begun_before_the_job_could_run_the_later_is_charged() -> None:
    story = Story().submitted(0, eligible_ts=START + 10_000_000)
    story.phase(0, None, "scheduling.queue_wait").phase(2, None, "scheduling.quota")
    got = story.at(30).summary
    assert (got.stages, got.hidden_s) == ({"scheduling.quota": 20}, {"scheduling.queue_wait": 20})


def test_of_two_waits_that_run_on_after_the_allocation_the_one_that_ends_last_is_charged() -> None:
    story = Story().started(0).trains(10).progress(100, 90).ended(100, "failed")
    story.phase(50, 125, "scheduling.queue_wait", attempt=1).phase(40, 130, "scheduling.quota", attempt=1)
    story.started(120, 1)
    assert (0, "scheduling.quota", 100, 120) in story.segments(140)


def test_a_spare_that_was_allocated_early_costs_no_recovery() -> None:
    story = Story().started(0).trains(0).progress(100, 100).started(50, 1)
    story.ended(100, "failed", source="scheduler").trains(110, 100, 1).progress(120, 110, 1)
    got = story.at().summary
    assert got.ttr_s == [10]
    assert "scheduling" not in got.stages


@pytest.mark.parametrize(
    ("now", "status", "e2e"),
    [
        (20, "training", 20),
        (619, "training", 619),
        (620, "silent", 620),
        (21_619, "silent", 21_619),
        (21_620, "lost", 20),
    ],
)
def test_silence(now: int, status: str, e2e: float) -> None:
    story = Story().started(0).trains(0).progress(20, 20)
    got = story.at(now).summary
    assert (got.status, got.e2e_s) == (status, e2e)
    assert ("inferred_end" in got.flags) == (status == "lost")
    assert got.nof == (status == "lost")


@pytest.mark.parametrize(("days", "status"), [(6.99, "recovering"), (7, "failed")])
def test_a_retry_that_never_comes(days: float, status: str) -> None:
    story = Story().started(0).trains(0).progress(20, 20).ended(30, "preempted", cause="capacity")
    got = story.at(30 + days * 86_400).summary
    assert got.status == status
    assert got.e2e_s == (30 if status == "failed" else 30 + days * 86_400)
    assert (got.nof, got.nof_preempted) == (1, 1)


def test_a_queued_job_never_expires() -> None:
    got = Story().submitted().at(100 * 86_400).summary
    assert (got.status, got.attempts, got.gpus) == ("pending", 0, 8)
    assert got.stages == {"scheduling": 100 * 86_400}
    assert (got.gpu_e2e_s, got.gpu_held_s) == (8 * 100 * 86_400, 0)


def test_a_lost_job_comes_back_when_it_speaks() -> None:
    story = Story().started(0).trains(0, report_every_s=7200).progress(20, 20)
    assert story.at(30_000).summary.status == "lost"
    story.progress(30_000, 40)
    got = story.at(30_001).summary
    assert (got.status, got.nof, got.flags) == ("training", 0, [])


def test_a_job_that_ended_before_its_last_attempt_started_went_on() -> None:
    story = Story().started(0).ended(10, "failed").over(11, "failed").started(20, 1).trains(25, 0, 1).progress(30, 5, 1)
    got = story.at().summary
    assert (got.status, got.t1 - got.t0) == ("training", 30_000_000)
