"""Each view with data, without, while it loads, and where the server says no."""

from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from support.web_answers import BAD_JOB
from support.web_page import Watched, accessible
from support.web_server import Answer, Question, Refused, Site
from web.replies import empty, usual

AT_BAD_JOB: Final = f"/jobs/{quote(BAD_JOB, safe='')}"
# Where it is, what stands there with data, what without (None: the same), what it asks first.
VIEWS: Final = {
    "fleet": ("/", "the fleet lost 565 of 2,000 GPU-hours", "No job had any time here", ("fleet",)),
    "team": ("/teams/team-ads", "the jobs of team-ads lost 565", "had no jobs in this time", ("teams", "team-ads")),
    "owner": ("/owners/compilers", "cost the fleet 140 GPU-hours", "Nothing was lost", ("owners", "compilers")),
    "jobs": ("/jobs", "100,000 jobs fit", "No job fits", ("jobs",)),
    "job": (
        f"/jobs/{quote(BAD_JOB, safe='')}",
        "Why it took so long to start",
        "Nothing was charged yet",
        ("jobs", BAD_JOB),
    ),
    "compare": ("/compare?kind=model&a=a&b=b", "b uses its GPU time better", None, ("compare",)),
    "alerts": ("/alerts", "Time to start of team-ads doubled", "Nothing fires", ("alerts",)),
    "advice": ("/advice", "Share the compile cache between attempts", "Nothing to gain was found", ("advice",)),
    "sql": ("/sql", "Queries can only read", None, ("sql",)),
}
each = pytest.mark.parametrize("view", VIEWS)


def refusing(first: tuple[str, ...], status: int = 503) -> Callable[[Question], Answer]:
    """Return what answers as usual but for one question."""

    def reply(question: Question) -> Answer:
        if question.parts[: len(first)] == first:
            raise Refused(status, "the database is being looked after; try again soon")
        return usual(question)

    return reply


@each
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_with_data_it_says_so_and_is_accessible(view: str, theme: str, site: Site, watched: Watched) -> None:
    path, says, _, _ = VIEWS[view]
    watched.page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    watched.page.goto(site.url + path)
    page = watched.settled()
    expect(page.locator("main")).to_contain_text(says)
    expect(page).to_have_title(f"{page.locator('h1').inner_text().replace(chr(10), ' ')} · ettwatch")
    assert accessible(page) == []


@each
def test_without_data_it_says_what_to_do(view: str, site: Site, watched: Watched) -> None:
    path, says, without, _ = VIEWS[view]
    site.reply = empty
    site.first = None
    watched.page.goto(site.url + path)
    page = watched.settled()
    expect(page.locator("main")).to_contain_text(without or says)
    assert accessible(page) == []


@each
def test_while_it_loads_it_says_so(view: str, site: Site, page: Page) -> None:
    path, says, _, _ = VIEWS[view]
    site.answers.clear()
    page.goto(site.url + path)
    if view == "sql":
        page.get_by_role("button", name="Run").click()
        says = "2 rows"
    expect(page.locator("main .loading[role=status]").first).to_contain_text("Loading")
    site.answers.set()
    expect(page.locator("main")).to_contain_text(says)


@each
def test_where_the_server_says_no_it_says_why_and_tries_again(view: str, site: Site, watched: Watched) -> None:
    path, says, _, first = VIEWS[view]
    watched.allowed = ("503",)
    site.reply = refusing(first)
    page = watched.page
    page.goto(site.url + path)
    if view == "sql":
        page.get_by_role("button", name="Run").click()
    alert = page.get_by_role("alert").first
    expect(alert).to_contain_text("the database is being looked after; try again soon")
    assert accessible(page) == []
    site.reply = usual
    if view == "sql":
        page.get_by_role("button", name="Run").click()
        says = "2 rows"
    else:
        alert.get_by_role("button", name="Try again").click()
    expect(page.locator("main")).to_contain_text(says)


@each
@pytest.mark.parametrize("width", [320, 2560])
def test_it_fits_every_screen(view: str, width: int, site: Site, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    watched.page.goto(site.url + VIEWS[view][0])
    page = watched.settled()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_and_messages_are_never_markup(site: Site, watched: Watched) -> None:
    for path in ("/jobs", "/teams/team-ads", AT_BAD_JOB, "/alerts?key=tts%7Cteam%3Dteam-ads"):
        watched.page.goto(site.url + path)
        page = watched.settled()
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main b").count() == 0
    page.goto(site.url + "/jobs")
    page.get_by_role("link", name=BAD_JOB).click()
    expect(page.locator("h1")).to_contain_text(BAD_JOB)


def test_a_job_that_is_not_there(site: Site, watched: Watched) -> None:
    watched.allowed = ("404",)
    site.reply = refusing(("jobs", "nowhere"), 404)
    watched.page.goto(site.url + "/jobs/nowhere")
    expect(watched.page.get_by_text("There is no job named nowhere.")).to_be_visible()


def test_an_address_of_nothing(site: Site, page: Page) -> None:
    page.goto(site.url + "/nonsense/%E0%A4%A")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()


def test_without_a_token_it_asks_for_one(site: Site, watched: Watched) -> None:
    watched.allowed = ("401",)
    page = watched.page
    inside = False

    def reply(question: Question) -> Answer:
        nonlocal inside
        if question.parts == ("login",):
            if question.body != {"token": "right"}:
                raise Refused(401, "no")
            inside = True
        if not inside:
            raise Refused(401, "a token is needed")
        return usual(question)

    site.reply = reply
    page.goto(site.url + "/teams/team-ads")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not known")
    assert accessible(page) == []
    page.get_by_label("Token").fill("right")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("main")).to_contain_text("the jobs of team-ads lost")
