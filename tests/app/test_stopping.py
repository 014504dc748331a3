"""A worker ends when it is asked to, whatever keeps it."""

import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import asyncio, sys
from ettwatch_app.commands._stopping import until_asked

async def run(asked):
    print("runs", flush=True)
    await asked.wait()
    await asyncio.sleep({takes})
    print("in good order", flush=True)

asyncio.run(until_asked(run, patience_s={patience}))
"""


def ended(takes: float, patience: float, signals: int) -> tuple[int, str, float]:
    program = PROGRAM.format(takes=takes, patience=patience)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        while signals > 1 and process.poll() is None:  # two that come before it looks are one
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        return process.wait(60), rest, time.monotonic() - begun


def test_in_good_order_where_that_can_be() -> None:
    code, said, _ = ended(takes=0.1, patience=30, signals=1)
    assert (code, said) == (0, "in good order\n")


@pytest.mark.parametrize(("patience", "signals"), [(1, 1), (600, 2)], ids=["too slow", "asked twice"])
def test_at_once_where_nothing_can_be_handed_back(patience: float, signals: int) -> None:
    code, said, seconds = ended(takes=600, patience=patience, signals=signals)
    assert (code, said) == (0, "")
    assert seconds < 60
