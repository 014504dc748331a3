"""kill -9 at any moment: a process that delivers is killed again and again, and a receiver hears of every change."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ettwatch_monitor.alerts.deliver import Outbox
from support.delivery import receiver

pytestmark = pytest.mark.slow
CHANGES = 30
PROGRAM = """
import sys, time
from pathlib import Path
from ettwatch_monitor.alerts.deliver import Delivery, Outbox, Plan, WebhookChannel
from ettwatch_monitor.alerts.deliver.post import Login, Poster
from ettwatch_monitor.alerts.deliver.secret import Secret
from support.delivery import MINUTE, T0, firing, resolved

folder, url, changes = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
channel = WebhookChannel("hook", Plan(), Poster(Secret("text", url), Login()))
with Delivery(Outbox(folder / "outbox"), [channel], now=T0) as delivery:
    # Every life begins with the first change: the outbox knows which it was told.
    for change in range(changes):
        now = T0 + change * MINUTE
        begin = T0 + (change - change % 2) * MINUTE
        alert = firing(at=begin) if change % 2 == 0 else resolved(firing(at=begin), now)
        delivery.put(alert, now)
        delivery.deliver_all(now)
        time.sleep(0.002)
"""


def test_every_change_arrives_in_order_whenever_it_is_killed(tmp_path: Path) -> None:
    chance = random.Random(4)
    with receiver() as hook:
        for _ in range(100):
            command = [sys.executable, "-c", PROGRAM, str(tmp_path), hook.url, str(CHANGES)]
            process = subprocess.Popen(command, cwd=Path(__file__).parents[1])
            known = len(hook.got)
            while process.poll() is None and len(hook.got) < known + chance.randint(3, 12):
                time.sleep(0.001)
            time.sleep(chance.random() * 0.01)
            process.send_signal(signal.SIGKILL)
            if process.wait(30) == 0:
                break
        else:
            raise AssertionError("it never came to its end")
    once = list({request.json["id"]: request.json for request in hook.got}.values())
    assert [message["status"] for message in once] == ["firing", "resolved"] * (CHANGES // 2)
    assert [message["episode"] for message in once] == sorted(message["episode"] for message in once)
    with Outbox(tmp_path / "outbox") as outbox:
        assert outbox.queue.counts("hook") == {"sent": CHANGES}
