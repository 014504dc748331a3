"""The page as `ettwatch up --page` serves it: the real server, over what was read, in a real browser."""

import json
import time
from pathlib import Path

from playwright.sync_api import expect

from ettwatch_app.datafolder import DataFolder
from support.web_page import Watched, accessible
from up.test_command import living


def lines(job: str) -> bytes:
    """A job that trains since a minute; in its start one of two ranks was 20 s late, on the host b."""
    begin = time.time_ns() // 1_000 - 180_000_000
    told: list[dict[str, object]] = [
        {"kind": "job_submitted", "at": 0, "team": "ads", "model": "ranker", "cluster": "east", "gpus": 16},
        {"kind": "attempt_started", "at": 10, "gpus": 16, "attempt": 0},
    ]
    for rank, host, end in ((0, "host-a", 50), (8, "host-b", 70)):
        who = {"attempt": 0, "rank": rank, "host": host, "span": f"s{rank}"}
        told.append({"kind": "phase_started", "at": 20, "phase": "trainer_init.checkpoint_load", **who})
        told.append({"kind": "phase_ended", "at": end, **who})
    loop = {"attempt": 0, "rank": 0, "host": "host-a"}
    told.append({"kind": "training_started", "at": 100, "position": 0, "step": 0, **loop})
    told += [{"kind": "progress", "at": 100 + n, "position": n, "step": n, **loop} for n in range(10, 80, 10)]
    events = []
    for number, one in enumerate(told):
        seconds = one.pop("at")
        assert isinstance(seconds, int)
        events.append({"v": 1, "id": f"{job}-{number}", "job": job, "ts": begin + seconds * 1_000_000, **one})
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def test_what_is_read_comes_to_the_page_and_can_be_opened(tmp_path: Path, watched: Watched) -> None:
    folder = DataFolder(tmp_path / "data")
    page = watched.page
    with living(folder.root, "--page", "127.0.0.1:0") as one:
        page.goto(one.until("started")["page"])
        watched.settled()
        expect(page.locator(".pulse")).to_have_text("Live")
        expect(page.locator("#live")).to_contain_text("No job runs or waits now.")
        (folder.spool / "a.jsonl").write_bytes(lines("newcomer"))
        page.locator("#live").get_by_role("link", name="newcomer").click(timeout=60_000)
        watched.settled()
        expect(page.locator("h1")).to_contain_text("newcomer")
        expect(page.locator("#timeline svg.timeline")).to_be_visible()
        expect(page.locator("#attempts tbody tr")).to_contain_text("host-a and 1 more")
        expect(page.locator("#stragglers tbody tr")).to_contain_text("8host-b20 s")
        expect(page.locator("#start")).to_contain_text("No other job of ranker started in this time")
        assert accessible(page) == []
        page.get_by_role("link", name="SQL").click()
        page.get_by_label("Query in SQL").fill("SELECT job, status FROM jobs")
        page.get_by_role("button", name="Run").click()
        expect(page.locator("#result tbody tr")).to_have_text("newcomertraining")
        page.goto("about:blank")
        assert one.end() == 0
