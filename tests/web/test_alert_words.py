"""An alert in the words of the other pages, with what to do and what it is of one click away."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from ettwatch_monitor.api.shapes import Alerts
from support.web_answers import HOUR, NOW
from support.web_page import Watched, accessible
from support.web_server import Answer, Question, Site
from web.replies import usual


def telling(site: Site, **told: Any) -> None:
    """Have the alerts say something else."""

    def reply(question: Question) -> Answer:
        answer = usual(question)
        if isinstance(answer, Alerts):
            return answer.model_copy(update={"alerts": [one.model_copy(update=told) for one in answer.alerts]})
        return answer

    site.reply = reply


def opened(site: Site, watched: Watched) -> Locator:
    watched.page.goto(site.url + "/alerts?key=tts%7Cteam%3Dteam-ads")
    return watched.settled().locator("details[open]")


def test_stages_have_the_names_that_they_have_elsewhere(site: Site, watched: Watched) -> None:
    telling(
        site,
        title="hardware_setup on west takes 3 times as long as before",
        body="hardware_setup on west takes 3 times as long as before.\n\nstage pt2_compilation.inductor: 80 % of it, "
        "of scheduling nothing; job my-pt2_compilation.x/hardware_setup-7 is the worst",
        labels={"metric": "share.hardware_setup", "cluster": "west", "sort": "step", "alertname": "EttwatchRegression"},
        figures={"p50_before": 0.12, "p50_after": 0.31, "ratio": 2.6, "samples_before": 40, "p": 0.0000001},
    )
    one = opened(site, watched)
    expect(one.locator("strong")).to_have_text("Hardware setup on west takes 3 times as long as before")
    body = one.locator("p.plain")
    # The title is not told twice, and names of jobs stay as they are.
    expect(body).to_have_text(
        "Stage Compilation: inductor: 80 % of it, of scheduling nothing; "
        "job my-pt2_compilation.x/hardware_setup-7 is the worst"
    )
    expect(one.locator(".label")).to_have_text(["figure: share of Hardware setup", "cluster: west"])
    expect(one.locator(".pairs div")).to_have_text(
        [
            "median before12.0 %",
            "median since31.0 %",
            "times as much, among like jobs2.60",
            "samples before40.0",
            "chance alone, at any timeless than 0.01 %",
        ]
    )
    assert accessible(watched.page) == []


@pytest.mark.parametrize(
    ("labels", "stage", "team", "owner", "sort"),
    [
        ({"metric": "tts", "team": "ads"}, None, "ads", None, "-tts"),
        ({"metric": "cache_hits", "team": "feed", "owner": "compiler"}, "pt2_compilation", "feed", None, "-tts"),
        ({"metric": "part.shutdown", "owner": "publishing"}, "shutdown", None, None, "-lost"),
        ({"metric": "ett", "owner": "publishing"}, None, None, "publishing", "-lost"),
        ({"metric": "nof", "cluster": "north"}, None, None, None, "-nof"),
    ],
)
def test_the_remedy_and_the_jobs_are_one_click_away(
    site: Site,
    watched: Watched,
    labels: dict[str, str],
    stage: str | None,
    team: str | None,
    owner: str | None,
    sort: str,
) -> None:
    telling(site, labels=labels)
    one = opened(site, watched)

    def leads(name: str) -> tuple[str, dict[str, str]]:
        split = urlsplit(one.get_by_role("link", name=name).get_attribute("href") or "")
        return split.path, {key: values[0] for key, values in parse_qs(split.query).items()}

    wanted = {"stage": stage, "team": team, "owner": owner}
    assert leads("What to do about it") == ("/advice", {key: value for key, value in wanted.items() if value})
    path, asked = leads("The jobs since then")
    assert (path, asked["sort"], asked.get("cluster")) == ("/jobs", sort, labels.get("cluster"))
    assert (int(asked["from"]), int(asked["to"])) == (NOW - 2 * HOUR, NOW)


def test_a_query_of_an_alert_is_run_at_once_and_only_by_a_click(site: Site, watched: Watched) -> None:
    one = opened(site, watched)
    page = watched.page
    one.get_by_role("link", name="The starts behind it").click()
    expect(page.locator("#result")).to_contain_text("2 rows")
    asked = [question.body for question in site.asked if question.parts == ("sql",)]
    assert asked == [{"query": "SELECT job, tts_s FROM jobs"}]
    page.reload()
    watched.settled()
    expect(page.locator("#result")).to_contain_text("Nothing was asked yet.")
    assert len([question for question in site.asked if question.parts == ("sql",)]) == 1
