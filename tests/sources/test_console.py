"""Console logs of torchtitan and Megatron-LM.

Origin of the samples: torchtitan's from its documents and runs that people show (the float8 tutorial of June 2025:
steps 1, 10, 20, 30 and their times; loading a Llama 3.1 checkpoint: 14.20 s; a debug run of November 2025: "Starting
job" and the lines before the first step). Megatron's from a GPT run of 2024-09 (10 iterations in 131 s, then 121 s)
and a run of 2024-07 (world size and setup as there). Lines that are not shown there are rebuilt by hand; the
arithmetic is in the tests.
"""

import pytest

from support.imported import Imported

TITAN = """\
W0604 08:51:20.787000 1122840 torch/distributed/run.py:803] *****************************************
[rank0]:[titan] 2025-06-04 08:51:24,074 - root - INFO - Starting job: Llama 3 8B training
[rank0]:[titan] 2025-06-04 08:51:26,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]
[rank0]:[titan] 2025-06-04 08:51:28,000 - root - INFO - Loading the checkpoint from assets/models/dcp/llama3.1-8B.
[rank0]:[titan] 2025-06-04 08:51:42,200 - root - INFO - [GC] GC collection for checkpoint loading. 0.01 seconds.
[rank0]:[titan] 2025-06-04 08:51:42,200 - root - INFO - Finished loading the checkpoint in 14.20 seconds.
[rank0]:[titan] 2025-06-04 08:51:42,200 - root - INFO - Training starts at step 1.
[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step:  1  loss: 12.2254  memory: 27.34GiB(28.78%)  tps: 375
[rank0]:[titan] 2025-06-04 08:51:58,557 - root - INFO - step: 10  loss: 10.7069  memory: 30.99GiB(32.62%)  tps: 7,034
[rank0]:[titan] 2025-06-04 08:52:10,224 - root - INFO - step: 20  loss:  8.9196  memory: 30.99GiB(32.62%)  tps: 7,022
[rank0]:[titan] 2025-06-04 08:52:10,224 - root - INFO - Saving the checkpoint (or staging if async is enabled).
[rank0]:[titan] 2025-06-04 08:52:15,224 - root - INFO - Finished saving the checkpoint (or staging if async is
enabled)in 5.0 seconds.
[rank0]:[titan] 2025-06-04 08:52:26,904 - root - INFO - step: 30  loss:  8.1423  memory: 30.99GiB(32.62%)  tps: 7,014
"""
END = """\
[rank0]:[titan] 2025-06-04 08:52:26,904 - root - INFO - Training completed
[rank0]:[titan] 2025-06-04 08:52:29,000 - root - INFO - Process group destroyed.
"""


def test_a_run_of_torchtitan() -> None:
    found = Imported("auto", TITAN + END)
    assert found.report.kind == "torchtitan"
    job = found.job
    # From the first line with a year, 08:51:24.074, to the last, 08:52:29.000.
    assert job.e2e_s == pytest.approx(64.926)
    # The loop starts at 08:51:42.200: TTS 18.126 s, of which 14.2 s load the checkpoint.
    assert job.tts_s == pytest.approx(18.126)
    assert job.stages["trainer_init.checkpoint_load"] == pytest.approx(14.2)
    # In the loop 44.704 s, 5 s of them save.
    assert job.effective_s == pytest.approx(44.704 - 5.0)
    assert job.stages["wasted_training.checkpoint_save"] == pytest.approx(5.0)
    assert job.ett_pct == pytest.approx(100 * 39.704 / 64.926)
    assert (job.nof, job.ttr_s, job.status) == (0, [], "succeeded")
    assert {"zone_assumed", "position_is_step", "no_start"} <= found.flags
    # "or staging if async": not known to be durable.
    assert found.of("checkpoint_durable") == []


FAILS = """\
[rank3]: Traceback (most recent call last):
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB.
E0604 08:52:40.904000 1122840 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 3
"""
AGAIN = (
    TITAN.replace("08:51", "09:01")
    .replace("08:52", "09:02")
    .replace("Training starts at step 1.", "Training starts at step 21.")
    .replace("step:  1 ", "step: 21 ")
    .replace("step: 10 ", "step: 30 ")
    .replace("step: 20  loss", "step: 40  loss")
    .replace("step: 30  loss:  8.1", "step: 50  loss:  8.1")
)


def test_a_run_that_fails_and_goes_on_in_the_same_log() -> None:
    found = Imported("torchtitan", TITAN + FAILS + AGAIN + END.replace("08:52", "09:02"), batch=128)
    job = found.job
    # It was interrupted at its last advance, 08:52:26.904, and trained again at 09:01:42.200: TTR 555.296 s.
    assert (job.attempts, job.nof, job.status) == (2, 1, "succeeded")
    assert job.ttr_s == [pytest.approx(555.296)]
    (first, _) = found.of("attempt_ended")
    assert (first["outcome"], first["cause"], first["exit_code"]) == ("failed", "gpu_memory", 1)
    assert "CUDA out of memory" in first["message"]
    assert "year_assumed" in found.flags
    # It goes on at step 20 of 30: steps 21 to 30 were done before, in the 16.357 s up to the line of step 30.
    assert job.stages["wasted_training.rework"] == pytest.approx(16.357)
    assert found.of("progress")[-1]["position"] == 50 * 128


def test_ranks_of_one_log_and_of_files_by_torchrun() -> None:
    two = "".join(line + line.replace("[rank0]", "[rank1]") for line in (TITAN + END).splitlines(keepends=True))
    both = Imported("torchtitan", two)
    assert both.job.effective_s == pytest.approx(39.704)
    assert (both.job.attempts, both.job.nof) == (1, 0)
    assert "several_ranks" in both.flags
    plain = TITAN.replace("[rank0]:", "")
    file = Imported("torchtitan", plain, name="logs/none_x/attempt_2/5/stderr.log")
    assert {(event.attempt, event.rank) for event in file.events if event.kind == "progress"} == {(2, 5)}


def test_a_log_without_an_end_stays_open() -> None:
    found = Imported("torchtitan", TITAN)
    assert "no_end" in found.flags
    assert found.job.status == "training"


MEGATRON = """\
using world size: 8, data-parallel size: 8, context-parallel size: 1 tensor-model-parallel size: 1
time to initialize megatron (seconds): 12.500
[after megatron is initialized] datetime: 2024-09-03 15:51:00
building GPT model ...
[after model, optimizer, and learning rate scheduler are built] datetime: 2024-09-03 15:51:40
> finished creating GPT datasets ...
[after dataloaders are built] datetime: 2024-09-03 15:52:40
done with setup ...
training ...
[before the start of training step] datetime: 2024-09-03 15:52:43
 [2024-09-03 15:54:54] iteration       10/  500000 | consumed samples:        10240 | elapsed time per iteration (ms): \
13035.3 | throughput per GPU (TFLOP/s/GPU): 812.5 | learning rate: 0.000000E+00 | global batch size:  1024 | loss
scale: 1 |
Number of parameters in transformer layers in billions:  6.02
 [2024-09-03 15:56:55] iteration       20/  500000 | consumed samples:        20480 | elapsed time per iteration (ms): \
12137.8 | throughput per GPU (TFLOP/s/GPU): 872.5 | learning rate: 6.976744E-07 | global batch size:  1024 | lm loss:
10 |
(min, max) time across ranks (ms):
    evaluate .......................................: (2101.26, 2200.00)
 validation loss at iteration 20 | lm loss value: 1.103246E+01 | lm loss PPL: 6.184932E+04 |
saving checkpoint at iteration      20 to ./checkpoints
  successfully saved checkpoint at iteration      20 to ./checkpoints
(min, max) time across ranks (ms):
    save-checkpoint ................................: (7700.00, 7800.00)
 [2024-09-03 15:59:06] iteration       30/  500000 | consumed samples:        30720 | elapsed time per iteration (ms): \
12068.8 | throughput per GPU (TFLOP/s/GPU): 877.5 | learning rate: 2.093023E-06 | global batch size:  1024 | lm loss:
9 |
"""


def test_a_run_of_megatron() -> None:
    found = Imported("auto", MEGATRON + "[after training is done] datetime: 2024-09-03 15:59:06\n")
    assert found.report.kind == "megatron"
    job = found.job
    # It began 12.5 s before 15:51:00, by its own count. The loop starts at 15:52:43.
    assert job.tts_s == pytest.approx(12.5 + 103)
    assert job.e2e_s == pytest.approx(12.5 + 486)
    assert job.stages["trainer_init.process_group_init"] == pytest.approx(12.5)
    assert job.stages["trainer_init.train_module_creation"] == pytest.approx(40)
    assert job.stages["trainer_init.preproc_creation"] == pytest.approx(60)
    # 131 s, 121 s, and 131 s of which 2.2 s evaluate and 7.8 s save.
    assert job.effective_s == pytest.approx(131 + 121 + 121)
    assert job.stages["wasted_training.evaluation"] == pytest.approx(2.2)
    assert job.stages["wasted_training.checkpoint_save"] == pytest.approx(7.8)
    assert job.ett_pct == pytest.approx(100 * 373 / 498.5)
    assert (job.gpus, job.nof, job.status) == (8, 0, "succeeded")
    (durable,) = found.of("checkpoint_durable")
    assert (durable["position"], durable["step"]) == (20480, 20)
    assert {"zone_assumed", "whole_seconds"} <= found.flags
    assert "position_is_step" not in found.flags


def test_a_run_of_megatron_that_resumes_in_the_same_log() -> None:
    again = MEGATRON.replace("2024-09-03 15:", "2024-09-03 17:")
    for old, new in (("30/", "50/"), ("20/", "40/"), ("10/", "30/"), ("30720", "51200"), ("20480", "40960")):
        again = again.replace(f" {old}", f" {new}").replace(f" {old.replace('/', ' ')}", f" {new}")
        again = again.replace(f"        {old}", f"        {new}")
    again = again.replace("consumed samples:        10240", "consumed samples:        30720")
    found = Imported("megatron", MEGATRON + again)
    job = found.job
    assert (job.attempts, job.nof) == (2, 1)
    # Interrupted at 15:59:06, trains again at 17:52:43.
    assert job.ttr_s == [6817.0]
    # 131 s for ten iterations of 13,035 ms: it began at 30720 - 10 * 1024 samples, all of them done before.
    assert job.stages["wasted_training.rework"] == pytest.approx(131)
    assert "inferred_end" in job.flags


def test_old_logs_without_times_are_refused_line_by_line() -> None:
    text = "[before the start of training step] datetime: 2021-09-08 03:19:09 \n"
    text += (
        " iteration        1/    1000 | consumed samples:         1024 | elapsed time per iteration (ms): 201212.4 |\n"
    )
    found = Imported("auto", text)
    assert found.report.kind == "megatron"
    assert found.report.refused == 1
    assert "no_time" in found.flags
    assert found.of("progress") == []


def test_a_line_cut_in_the_middle() -> None:
    found = Imported("megatron", MEGATRON + " [2024-09-03 16:00:00] iteration       40/  500000 | consumed sam")
    assert {"truncated", "no_end"} <= found.flags
    assert found.of("progress")[-1]["position"] == 30720
