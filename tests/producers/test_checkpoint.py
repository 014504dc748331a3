import threading

import pytest

from ettwatch_schemas import CheckpointDurable, PhaseEnded, PhaseStarted
from support.spooled import Recording, kinds


def durable(recording: Recording) -> list[CheckpointDurable]:
    return [event for event in recording.events("checkpoint_durable") if isinstance(event, CheckpointDurable)]


def phases(recording: Recording) -> list[str]:
    return [event.phase for event in recording.events("phase_started") if isinstance(event, PhaseStarted)]


def test_a_checkpoint_is_durable_when_its_block_ends(recording: Recording) -> None:
    rec = recording.start()
    rec.training_started(position=100, step=10)
    rec.step(5)
    with rec.checkpoint():
        rec.step(5)  # what came later is not in it
    (saved,) = durable(recording)
    assert (saved.position, saved.step, saved.bytes) == (105, 11, None)
    assert saved.started_ts is not None
    assert saved.started_ts <= saved.ts
    assert phases(recording) == ["wasted_training.checkpoint_save"]
    assert kinds(recording.events())[-2:] == ["phase_ended", "checkpoint_durable"]


def test_an_asynchronous_one_is_durable_when_it_is_told(recording: Recording) -> None:
    rec = recording.start()
    rec.training_started()
    with rec.checkpoint(step=3, position=96, asynchronous=True) as checkpoint:
        pass
    assert not durable(recording)
    thread = threading.Thread(target=checkpoint.durable, kwargs={"bytes": 1024})
    thread.start()
    thread.join()
    checkpoint.durable(bytes=2048)
    (saved,) = durable(recording)
    assert (saved.position, saved.step, saved.bytes) == (96, 3, 1024)


def test_one_that_says_its_size_inside_its_block_is_told_once(recording: Recording) -> None:
    rec = recording.start()
    with rec.checkpoint(step=1, position=2) as checkpoint:
        checkpoint.durable(bytes=7)
    assert [event.bytes for event in durable(recording)] == [7]


def test_one_that_fails_is_not_durable(recording: Recording) -> None:
    rec = recording.start()
    error = OSError(28, "no space")
    with pytest.raises(OSError) as caught, rec.checkpoint():
        raise error
    assert caught.value is error
    assert not durable(recording)
    (ended,) = recording.events("phase_ended")
    assert isinstance(ended, PhaseEnded)
    assert ended.outcome == "error"


def test_after_the_loop_it_is_the_final_one(recording: Recording) -> None:
    rec = recording.start()
    with rec.training(position=1), rec.checkpoint():
        pass
    with rec.checkpoint():
        pass
    assert phases(recording) == ["wasted_training.checkpoint_save", "shutdown.final_checkpoint"]


def test_the_other_ranks_tell_of_their_part_and_only_when_asked_that_it_is_durable(recording: Recording) -> None:
    rec = recording.start({"ETTWATCH_RANK": "3"})
    with rec.checkpoint(position=1):
        pass
    assert (phases(recording), durable(recording)) == (["wasted_training.checkpoint_save"], [])
    with rec.checkpoint(position=2) as checkpoint:
        checkpoint.durable(bytes=1)
    assert [(event.rank, event.position) for event in durable(recording)] == [(3, 2)]
