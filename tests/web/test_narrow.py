"""A telephone: rows are cards, nothing is cut off, filters are folded, what a list is sorted by comes first."""

import pytest
from playwright.sync_api import Page, expect

from support.web_page import Watched, accessible
from support.web_server import Site

WIDTH = 360


@pytest.fixture
def page(watched: Watched) -> Page:
    watched.page.set_viewport_size({"width": WIDTH, "height": 740})
    return watched.page


def cut_off(page: Page) -> list[str]:
    """What lies beyond the right edge, and can be reached by nothing but scrolling a table sideways."""
    script = """width => [...document.querySelectorAll('main table.cards td, main table.cards th')]
        .filter(one => one.offsetParent !== null && one.getBoundingClientRect().right > width)
        .map(one => `${one.closest('[aria-label]').ariaLabel}: ${one.innerText}`)"""
    found: list[str] = page.evaluate(script, WIDTH)
    return found


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/job-1", "/teams/team-ads", "/owners/compilers", "/advice"])
def test_no_row_is_cut_off(path: str, site: Site, page: Page, watched: Watched) -> None:
    page.goto(site.url + path)
    watched.settled()
    assert cut_off(page) == []
    assert accessible(page) == []


def test_a_card_has_the_name_then_what_it_is_sorted_by_then_the_rest_with_their_names(
    site: Site, page: Page, watched: Watched
) -> None:
    page.goto(site.url + "/jobs?sort=-recovery")
    watched.settled()
    card = page.locator("table.cards tbody tr").nth(1)
    expect(page.locator("table.cards thead")).to_be_hidden()
    name, first = card.locator("th").bounding_box(), card.locator("td.by").bounding_box()
    assert name is not None
    assert first is not None
    expect(card.locator("td.by")).to_have_text("8 min 15 s")
    assert first["x"] == name["x"]
    assert 0 <= first["y"] - name["y"] - name["height"] < 10
    # Of less weight, and not what it is sorted by.
    expect(card.locator("td[data-head=model]")).to_be_hidden()
    sorting = page.get_by_label("Sorted by")
    expect(sorting).to_have_value("-recovery")
    sorting.select_option("tts")
    expect(page).to_have_url(site.url + "/jobs?sort=tts")
    expect(card.locator("td.by")).to_have_attribute("data-head", "time to start")


def test_filters_are_folded_and_say_how_many_are_set(site: Site, page: Page, watched: Watched) -> None:
    page.goto(site.url + "/jobs?team=team-ads&status=live")
    watched.settled()
    expect(page.get_by_label("Team")).to_be_hidden()
    fold = page.get_by_role("button", name="Filters, 2 set")
    expect(fold).to_have_attribute("aria-expanded", "false")
    first = page.locator("table.cards tbody tr").first.bounding_box()
    assert first is not None
    assert first["y"] < 600  # on the first screen
    fold.click()
    expect(page.get_by_label("Team")).to_have_value("team-ads")
    assert accessible(page) == []


def test_where_there_is_room_filters_stand_open_and_rows_are_rows(site: Site, watched: Watched) -> None:
    watched.page.goto(site.url + "/jobs")
    page = watched.settled()
    expect(page.get_by_label("Team")).to_be_visible()
    expect(page.get_by_role("button", name="Filters")).to_be_hidden()
    expect(page.get_by_label("Sorted by")).to_be_hidden()
    expect(page.get_by_role("columnheader", name="GPUs")).to_be_visible()
