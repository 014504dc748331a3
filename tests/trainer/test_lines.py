import pytest

from ettwatch_trainer.lines import Lines


def test_steps_are_told_about_once_a_second_and_the_last_one_always(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    lines = Lines(attempt=1, steps=7, silent=False, clock=lambda: now)
    for step in range(1, 8):
        now += 0.4
        lines.step(step, 0.5 + step / 100, 1000)
    assert capsys.readouterr().out.splitlines() == [
        "attempt 1  step 3/7  loss 0.530  2,500 samples/s",
        "attempt 1  step 6/7  loss 0.560  2,500 samples/s",
        "attempt 1  step 7/7  loss 0.570  2,500 samples/s",
    ]


def test_other_ranks_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(attempt=0, steps=1, silent=True)
    lines.say("hello")
    lines.step(1, 0.5, 10)
    assert capsys.readouterr().out == ""
