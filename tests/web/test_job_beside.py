"""The job beside others: where its ranks ran, what is usual for its model, which alerts fit, whom to compare with."""

from typing import Final

from playwright.sync_api import expect

from ettwatch_monitor.api.shapes import Alerts, JobDetail, OwnerOf, PhaseRow, Timeline
from support.web_page import Watched, accessible
from support.web_server import Answer, Question, Site
from web.replies import NOTHING_USUAL, usual, usual_start

OTHER: Final = OwnerOf(team="other", system=None, contact=None)


def on_hosts(row: PhaseRow) -> PhaseRow:
    return row.model_copy(update={"last_host": f"east-h{row.last_rank}"}) if row.behind_s else row


def with_hosts(question: Question) -> Answer:
    told = usual(question)
    if isinstance(told, JobDetail):
        attempts = [
            told.attempts[0].model_copy(update={"hosts": ["east-h0", "east-h7", "east-h8"]}),
            told.attempts[1],
        ]
        stragglers = [on_hosts(one) for one in told.stragglers]
        return told.model_copy(update={"attempts": attempts, "stragglers": stragglers})
    if isinstance(told, Timeline):
        return told.model_copy(update={"phases": [on_hosts(one) for one in told.phases]})
    return told


def test_a_rank_is_named_with_its_host(site: Site, watched: Watched) -> None:
    site.reply = with_hosts
    watched.page.goto(site.url + "/jobs/job-1")
    page = watched.settled()
    first = page.locator("#stragglers tbody tr").filter(has_text="process group init")
    expect(first.locator("td").nth(0)).to_have_text("5")
    expect(first.locator("td").nth(1)).to_have_text("east-h5")
    chart = page.locator("svg.timeline")
    expect(chart.locator("[data-says*='rank 7 (host east-h7) was last, 1 min behind']")).to_have_count(2)
    rows = page.locator("#attempts tbody tr")
    expect(rows.nth(0)).to_contain_text("east-h0 and 2 more")
    expect(rows.nth(0).locator("[title='east-h0, east-h7, east-h8']")).to_have_count(1)
    expect(rows.nth(1).locator("td[data-head=hosts]")).to_have_text("–")
    assert accessible(page) == []


def test_a_start_stands_beside_what_is_usual_and_the_excess_comes_first(site: Site, watched: Watched) -> None:
    watched.page.goto(site.url + "/jobs/job-1?range=yesterday")
    page = watched.settled()
    start = page.locator("#start")
    expect(start).to_contain_text("8 other starts of ranker took 5 min 30 s (median): this one 2 min 30 s longer.")
    expect(start).to_contain_text(
        "Most above the usual: Compilation (+1 min 10 s), Trainer start-up: get first batch data (+40 s), "
        "Trainer start-up: process group init (+30 s)."
    )
    expect(start).to_contain_text("It compiled everything anew (cold); 6 of 8 other starts found theirs in a cache.")
    rows = start.locator("tbody tr")
    expect(rows.nth(0)).to_contain_text("Compilation")
    expect(rows.nth(0).locator(".label")).to_have_text("cold")
    expect(rows.nth(0).locator("td[data-head=usual]")).to_have_text("20 s")
    expect(rows.nth(0).locator("td[data-head='above it']")).to_have_text("+1 min 10 s")
    expect(rows.last.locator("td[data-head='above it']")).to_have_text("±0 s")
    # Of a day that was chosen, the seven days to its end.
    (asked,) = {tuple(one.asked.items()) for one in site.asked if one.parts == ("jobs", "job-1", "usual")}
    window = {name: int(value) for name, value in asked}
    assert window["to"] - window["from"] == 7 * 86_400_000_000


def test_where_no_other_job_of_the_model_started_nothing_is_called_usual(site: Site, watched: Watched) -> None:
    def reply(question: Question) -> Answer:
        if question.parts[-1] == "usual":
            return usual_start(question.parts[1]).model_copy(update=NOTHING_USUAL)
        return usual(question)

    site.reply = reply
    watched.page.goto(site.url + "/jobs/job-1")
    page = watched.settled()
    start = page.locator("#start")
    expect(start).to_contain_text("No other job of ranker started in this time, so nothing says what is usual.")
    expect(start.locator("td[data-head=usual]")).to_have_count(0)
    expect(start.locator("tbody tr").first).to_contain_text("get first batch data")
    page.goto(site.url + "/compare?kind=job&a=job-1")
    expect(page.locator("main")).to_contain_text("No other job of ranker started in this time.")


def test_alerts_that_are_about_a_job_or_team_stand_on_their_pages(site: Site, watched: Watched) -> None:
    labels: dict[str, str] = {}

    def reply(question: Question) -> Answer:
        told = usual(question)
        if isinstance(told, Alerts):
            ours = [one.model_copy(update={"labels": labels}) for one in told.alerts if one.status == "firing"]
            return told.model_copy(update={"alerts": ours})
        if isinstance(told, JobDetail):
            owner = told.owners["pt2_compilation"]
            return told.model_copy(update={"owners": {"shutdown.model_publish": owner, "hardware_setup": OTHER}})
        return told

    site.reply = reply
    page = watched.page
    for told, on_job, on_team in (
        ({"team": "team-ads", "metric": "tts"}, 1, 1),
        ({"team": "team-feed"}, 0, 0),
        ({"model": "ranker", "cluster": "east"}, 1, 1),
        ({"model": "ranker", "cluster": "north"}, 0, 0),
        ({"owner": "compilers"}, 1, 1),
        ({"owner": "other"}, 0, 0),  # of a stage that cost the job little
        ({"scope": "fleet"}, 0, 0),
    ):
        labels.clear()
        labels.update(told)
        for path, wanted in (("/jobs/job-1", on_job), ("/teams/team-ads", on_team)):
            page.goto(site.url + path)
            watched.settled()
            expect(page.locator("#firing li")).to_have_count(wanted)
    labels.clear()
    labels.update({"team": "team-ads"})
    page.goto(site.url + "/jobs/job-1")
    page.locator("#firing").get_by_role("link", name="Time to start of team-ads doubled").click()
    expect(page.locator("details[open]")).to_contain_text("Time to start of team-ads doubled")


def test_jobs_of_the_model_are_offered_for_comparison(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/jobs/job-1")
    watched.settled()
    page.get_by_role("link", name="Compare with another job").click()
    offered = page.locator("#partners")
    expect(offered.locator("li")).to_have_count(2)
    expect(offered.locator("li").nth(0)).to_contain_text("job-middle the median start of this model, of 8: 5 min 30 s")
    expect(offered.locator("li").nth(1)).to_contain_text("job-new recent: 5 min to start, 8 GPUs")
    assert accessible(page) == []
    offered.get_by_role("link", name="job-middle").click()
    expect(page.get_by_label("Second")).to_have_value("job-middle")
    expect(page.locator(".lead")).to_contain_text("use their GPU time about equally well")
