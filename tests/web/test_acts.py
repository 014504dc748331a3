"""What people do with the page: zoom, filter, page, compare, ask, silence; and the way back from each."""

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from ettwatch_monitor.api.shapes import JobDetail, Timeline
from support.web_answers import DAY, HOUR, NOW, row
from support.web_page import Watched
from support.web_server import Answer, Question, Site
from support.web_service import live
from web.replies import usual


def last(site: Site, *parts: str) -> Question:
    """The last request of a kind."""
    return [one for one in site.asked if one.parts[: len(parts)] == parts][-1]


def drag(page: Page, over: Locator, start: float, end: float) -> None:
    """Drag across something, from a share of its width to another."""
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 3
    page.mouse.move(box["x"] + box["width"] * start, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (start + end) / 2, y, steps=3)
    page.mouse.move(box["x"] + box["width"] * end, y, steps=3)
    page.mouse.up()


def soon(true: Callable[[], bool], page: Page) -> None:
    """Wait until something is so; that of a request which was not made yet is not."""
    for _ in range(1_000):
        with contextlib.suppress(IndexError):
            if true():
                return
        page.wait_for_timeout(50)
    assert true()


def test_yesterday_is_yesterday_and_one_can_go_back(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/")
    watched.settled()
    page.get_by_role("link", name="Yesterday").click()
    expect(page).to_have_url(site.url + "/?range=yesterday")
    expect(page.locator(".lead").first).to_contain_text("Yesterday (20 Sep, UTC) the fleet lost")
    midnight = NOW // DAY * DAY
    soon(lambda: last(site, "fleet").asked["from"] == str(midnight - DAY), page)
    asked = last(site, "fleet").asked
    assert (int(asked["from"]), int(asked["to"])) == (midnight - DAY, midnight)
    page.get_by_role("link", name="team-ads").first.click()
    expect(page).to_have_url(site.url + "/teams/team-ads?range=yesterday")
    expect(page.locator("main")).to_be_focused()
    page.go_back()
    page.go_back()
    expect(page).to_have_url(site.url + "/")
    expect(page.locator(".lead").first).to_contain_text("In the last 24 hours")


def test_a_chart_zooms_by_dragging_and_by_keys(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/")
    watched.settled()
    chart = page.locator("#lost-over-time svg")
    drag(page, chart, 0.3, 0.7)
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    soon(lambda: last(site, "fleet", "series").asked["from"] != str(NOW - DAY), page)
    asked = last(site, "fleet", "series").asked
    start, end = int(asked["from"]), int(asked["to"])
    assert NOW - DAY < start < end < NOW
    assert (start % HOUR, end % HOUR) == (0, 0)
    page.go_back()
    expect(page).to_have_url(site.url + "/")
    watched.settled()
    page.mouse.move(0, 0)
    chart.focus()
    page.keyboard.press("Home")
    expect(page.locator("#lost-over-time .readout")).to_contain_text("20 Sep, 14:00 UTC: 23.5 GPU-hours")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(site.url + f"/?from={NOW - DAY}&to={NOW - DAY + 3 * HOUR}")


def test_every_chart_is_a_table_and_a_file_too(site: Site, watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.goto(site.url + "/")
    watched.settled()
    part = page.locator("#over-time")
    with page.expect_download() as saved:
        part.get_by_role("button", name="as SVG").click()
    saved.value.save_as(tmp_path / "chart.svg")
    drawing = (tmp_path / "chart.svg").read_text()
    assert saved.value.suggested_filename == "ett-over-time.svg"
    assert "<path" in drawing
    assert "class=" not in drawing
    assert "var(" not in drawing
    with page.expect_download() as saved:
        part.get_by_role("button", name="as PNG").click()
    saved.value.save_as(tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    part.get_by_role("button", name="As a table").click()
    expect(part.get_by_role("row")).to_have_count(23)
    expect(part.get_by_role("row").nth(1)).to_contain_text("60 %")


def test_a_timeline_zooms_into_an_attempt_and_back(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/jobs/job-1")
    watched.settled()
    chart = page.locator("svg.timeline")
    expect(chart).to_have_attribute("aria-label", "Timeline of job job-1, 1 h 54 min shown.")
    drag(page, chart, 0.5, 0.7)
    expect(page).to_have_url(re.compile(r"zf=\d+&zt=\d+"))
    expect(chart).not_to_have_attribute("aria-label", re.compile("1 h 54 min"))
    page.go_back()
    expect(chart).to_have_attribute("aria-label", re.compile("1 h 54 min"))
    page.locator("#attempts").get_by_role("button", name=re.compile("^1 ?: show in the timeline")).click()
    expect(chart).to_have_attribute("aria-label", re.compile("1 h 6 min shown"))
    shared = page.url
    page.get_by_role("button", name="Whole job").click()
    expect(chart).to_have_attribute("aria-label", re.compile("1 h 54 min"))
    page.goto(shared)
    expect(chart).to_have_attribute("aria-label", re.compile("1 h 6 min shown"))
    chart.focus()
    page.keyboard.press("-")
    expect(chart).to_have_attribute("aria-label", re.compile("1 h 2|1 h 3|1 h 4|1 h 5|1 h 1"))
    page.keyboard.press("0")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#timeline .readout")).to_contain_text("Scheduling: 1 min from 21 Sep, 11:00:00 UTC, attempt 0")


def test_a_timeline_shows_what_was_hidden_and_who_was_last(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/jobs/job-1")
    watched.settled()
    chart = page.locator("svg.timeline")
    compiled = chart.locator("[data-says^='Compilation: 5 min']").first
    expect(compiled).to_have_attribute("data-says", re.compile("3 min 30 s of it hidden behind something longer"))
    # 210 to 510 s are outlined, and only the part that was charged, 210 to 300 s, is filled.
    whole, part = compiled.locator("rect").nth(0).bounding_box(), compiled.locator("rect").nth(1).bounding_box()
    assert whole is not None
    assert part is not None
    assert abs(part["width"] / whole["width"] - 0.3) < 0.03
    expect(chart.locator("[data-says*='nothing waited for it'] rect")).to_have_count(1)
    # Both bars say it: that of the phase, and that of the time it was charged.
    expect(chart.locator("[data-says*='rank 7 was last, 1 min behind']")).to_have_count(2)
    expect(page.locator("#start")).to_contain_text(
        "The largest part, 44 %, went to Trainer start-up: get first batch data."
    )
    expect(page.locator("#start")).not_to_contain_text("waited for rank")
    expect(page.locator("#start")).to_contain_text("9 min went by: 1 min waiting for hardware, then 8 min on it")


def test_a_start_names_the_rank_that_the_others_waited_for(site: Site, watched: Watched) -> None:
    def reply(question: Question) -> Answer:
        told = usual(question)
        if isinstance(told, Timeline):
            # 2 s of device init, 21 s of the process group, and the last 60 s before the first batch.
            slow = {"last_rank": 3, "last_host": "east-h3"}
            late = [one.model_copy(update=slow) for one in told.phases if one.behind_s]
            return told.model_copy(update={"phases": late})
        return told

    site.reply = reply
    watched.page.goto(site.url + "/jobs/job-1")
    watched.settled()
    start = watched.page.locator("#start")
    expect(start).to_contain_text(
        "For 1 min 23 s of the start (15 %) the others waited for rank 3 (host east-h3), last in 3 stages."
    )


def test_a_job_that_did_not_start_has_no_link_to_nothing(site: Site, watched: Watched) -> None:
    def reply(question: Question) -> Answer:
        told = usual(question)
        if isinstance(told, JobDetail):
            return told.model_copy(update={"attempts": [], "row": told.row.model_copy(update={"tts_s": None})})
        return told

    site.reply = reply
    watched.page.goto(site.url + "/jobs/job-1")
    page = watched.settled()
    expect(page.locator("#start")).to_have_count(0)
    expect(page.locator("a[href='#start']")).to_have_count(0)


def test_the_time_goes_along_from_a_team_to_a_job_and_its_advice(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/teams/team-ads?range=yesterday")
    watched.settled()
    page.get_by_role("link", name="job-1").click()
    expect(page).to_have_url(site.url + "/jobs/job-1?range=yesterday")
    page.get_by_role("link", name="What to do about it").click()
    expect(page).to_have_url(site.url + "/advice?range=yesterday&job=job-1")
    expect(page.locator(".lead")).to_contain_text("What job job-1 could have got back over its whole life")
    soon(lambda: last(site, "advice").asked["job"] == "job-1", page)


def test_jobs_are_filtered_sorted_and_paged_in_the_address(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/jobs")
    watched.settled()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("main")).to_contain_text("Page 2 of 2,000")
    page.get_by_role("button", name="GPUs").click()
    expect(page).to_have_url(site.url + "/jobs?sort=-gpus")
    expect(page.get_by_role("columnheader", name="GPUs")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="GPUs").click()
    expect(page).to_have_url(site.url + "/jobs?sort=gpus")
    page.get_by_label("Name holds").fill("rank & file")
    expect(page).to_have_url(re.compile(r"q=rank\+%26\+file"))
    expect(page.get_by_role("link", name="rank & file-000000")).to_be_visible()
    page.get_by_label("Status").select_option("live")
    page.get_by_label("Team").fill("team-feed")
    page.get_by_label("Team").press("Tab")
    expect(page).to_have_url(re.compile("team=team-feed"))
    # Two requests that are made one right after the other may arrive in any order.
    soon(lambda: bool(with_team(site)), page)
    asked = with_team(site)[-1]
    assert (asked["q"], asked["status"], asked["sort"]) == ("rank & file", "live", "gpus")
    page.go_back()
    expect(page.get_by_label("Team")).to_have_value("")


def with_team(site: Site) -> list[dict[str, str]]:
    return [one.asked for one in site.asked if one.parts == ("jobs",) and one.asked.get("team") == "team-feed"]


def test_an_answer_that_arrives_takes_nothing_away_that_is_being_typed(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/jobs")
    watched.settled()
    team = page.get_by_label("Team")
    team.press_sequentially("team-f")
    page.evaluate("() => document.querySelector('select').dispatchEvent(new Event('change', { bubbles: true }))")
    page.get_by_role("button", name="GPUs").dispatch_event("click")
    expect(page).to_have_url(site.url + "/jobs?sort=-gpus")
    soon(lambda: any(one.asked.get("sort") == "-gpus" for one in site.asked if one.parts == ("jobs",)), page)
    watched.settled()
    expect(team).to_have_value("team-f")
    team.press_sequentially("eed")
    team.press("Tab")
    expect(page).to_have_url(re.compile("team=team-feed"))


def test_two_are_compared_and_swapped(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/jobs/job-1")
    watched.settled()
    page.get_by_role("link", name="Compare with another job").click()
    expect(page.get_by_label("First")).to_have_value("job-1")
    page.get_by_label("Second").fill("x/y?a")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".lead")).to_contain_text("job-1 uses its GPU time better: 71.0 % against 45.4 %")
    soon(lambda: last(site, "compare").asked["kind"] == "job", page)
    assert last(site, "compare").asked == {"kind": "job", "a": "job-1", "b": "x/y?a"}
    page.get_by_role("link", name="Swap").click()
    expect(page.get_by_label("First")).to_have_value("x/y?a")
    page.go_back()
    expect(page.get_by_label("First")).to_have_value("job-1")
    page.get_by_role("link", name="Weeks").click()
    page.get_by_label("First").fill("2026-W38")
    page.get_by_label("Second").fill("2026-W39")
    page.get_by_role("button", name="Compare").click()
    soon(lambda: last(site, "compare").asked.get("kind") == "week", page)
    assert page.locator("#sides option").first.get_attribute("value") == "2026-W39"


def test_what_happens_is_shown_without_a_reload(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/")
    watched.settled()
    expect(page.locator("#live")).to_contain_text("live-job")
    expect(page.locator(".pulse")).to_have_text("Live")
    fleets = sum(one.parts == ("fleet",) for one in site.asked)
    site.tell(live(2, changed=1, firing=3, jobs=[row("newcomer", "starting")]))
    expect(page.locator("#live")).to_contain_text("newcomer")
    expect(page.get_by_role("link", name="Alerts , firing: 3")).to_be_visible()
    assert sum(one.parts == ("fleet",) for one in site.asked) == fleets  # no rollup changed
    site.tell(live(3, changed=2))
    soon(lambda: sum(one.parts == ("fleet",) for one in site.asked) > fleets, page)
    site.tell(live(4, changed=2).model_copy(update={"stale": "the database does not answer"}))
    expect(page.locator(".banner.warn")).to_contain_text("the database does not answer")


def test_a_broken_stream_is_opened_anew(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/")
    watched.settled()
    expect(page.locator(".pulse")).to_have_text("Live")
    site.first = None  # it may be back before this is looked at: then it hears nothing yet
    site.hang_up()
    expect(page.locator(".pulse")).to_contain_text("trying again")
    soon(lambda: len(site.viewers) == 1, page)
    site.tell(live(9, jobs=[row("back-again", "training")]))
    expect(page.locator("#live")).to_contain_text("back-again")
    expect(page.locator(".pulse")).to_have_text("Live")


def test_sql_is_asked_and_saved_but_never_by_a_link_alone(site: Site, watched: Watched, tmp_path: Path) -> None:
    page = watched.page
    page.goto(site.url + "/sql?q=SELECT%201")
    watched.settled()
    expect(page.get_by_label("Query in SQL")).to_have_value("SELECT 1")
    assert not [one for one in site.asked if one.parts == ("sql",)]
    page.get_by_label("Query in SQL").fill("SELECT job, lost FROM jobs")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_contain_text("2 rows in 12 ms. There are more")
    assert last(site, "sql").body == {"query": "SELECT job, lost FROM jobs"}
    assert last(site, "sql").csrf == "a-csrf-token"
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    saved.value.save_as(tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text() == "job,lost\njob-1,12.5\n'=cmd(),"
    page.go_back()
    expect(page.get_by_label("Query in SQL")).to_have_value("SELECT 1")


def test_an_alert_is_silenced(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/alerts?key=tts%7Cteam%3Dteam-ads")
    watched.settled()
    expect(page.get_by_text("From 412 s to 830 s since 18:00.").first).to_be_visible()
    page.get_by_role("button", name="Silence …").click()
    expect(page.get_by_label("Alerts whose labels are")).to_have_value('team="team-ads", metric="tts"')
    page.get_by_label("For hours").fill("2")
    page.get_by_role("button", name="Silence", exact=True).click()
    expect(page.get_by_text("Silenced.")).to_be_visible()
    asked = last(site, "alerts", "silences")
    assert (asked.method, asked.csrf, asked.body["hours"]) == ("POST", "a-csrf-token", 2)
    page.get_by_role("link", name="The starts behind it").click()
    expect(page.get_by_label("Query in SQL")).to_have_value("SELECT job, tts_s FROM jobs")


def test_a_what_if_is_asked_and_shared(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/advice")
    watched.settled()
    page.get_by_text("Show the arithmetic").first.click()
    expect(page.get_by_text("31 × 14 min × 16.7 GPUs").first).to_be_visible()
    page.get_by_role("link", name="Try it with other numbers").first.click()
    expect(page.locator("#what-if")).to_contain_text("+70.0 GPU-hours a week would come back")
    remedy = {"remedy": "compile_cache", "team": "team-ads"}
    assert last(site, "advice", "what-if").body == {"changes": [remedy]}
    page.get_by_label("to % of what it is").fill("25")
    page.get_by_role("button", name="Replay").click()
    wanted = {"changes": [{"stage": "pt2_compilation", "factor": 0.25}], "team": "team-ads"}
    soon(lambda: last(site, "advice", "what-if").body == wanted, page)
    assert json.dumps(wanted, separators=(",", ":")) in page.evaluate("new URL(location).searchParams.get('if')")


def test_a_theme_is_chosen_and_kept(site: Site, watched: Watched) -> None:
    page = watched.page
    page.emulate_media(color_scheme="light")
    page.goto(site.url + "/")
    watched.settled()
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(ground) == "rgb(244, 245, 247)"
    page.get_by_label("Colours").select_option("dark")
    assert page.evaluate(ground) == "rgb(15, 19, 23)"
    page.reload()
    watched.settled()
    assert page.evaluate(ground) == "rgb(15, 19, 23)"


def test_a_definition_shows_on_focus_and_goes_on_escape(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/")
    watched.settled()
    page.get_by_role("button", name="ETT %").first.focus()
    tip = page.get_by_role("tooltip").filter(has_text="Effective training time").first
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()


def test_the_keyboard_reaches_everything(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/")
    watched.settled()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the figures")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
