"""What runs ends when it is asked to, whatever keeps it and wherever it is just then."""

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


IN_EVERY_LINE = """
import os, signal, sys
from ettwatch_app.asked import Asked

def asked_in(place):
    \"\"\"Send the signal in one of the lines that waiting takes; tell whether there are so many.\"\"\"
    asked, lines = Asked(), 0

    def handle(*_):
        sys.settrace(None)
        asked.set()

    def trace(*_):
        nonlocal lines
        lines += 1
        if lines == place:
            os.kill(os.getpid(), signal.SIGTERM)
        return trace

    signal.signal(signal.SIGTERM, handle)
    sys.settrace(trace)
    asked.wait(0.0)
    sys.settrace(None)
    assert asked.is_set() == (lines >= place)
    assert not asked.is_set() or asked.wait(600) and asked.wait()
    return asked.is_set()

place = 1
while asked_in(place):
    place += 1
print(place)
"""


def test_a_signal_may_come_in_any_line_of_waiting() -> None:
    done = subprocess.run([sys.executable, "-c", IN_EVERY_LINE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
