"""A fleet of one small job: GPU time is told in minutes or seconds where hours would all read "less than 0.01"."""

import pytest
from playwright.sync_api import expect

from support.web_page import Watched, accessible
from support.web_server import Site
from web.replies import tiny


@pytest.mark.parametrize("path", ["/", "/teams/team-ads", "/owners/compilers", "/jobs/job-1", "/advice"])
def test_nothing_is_only_less_than_something(path: str, site: Site, watched: Watched) -> None:
    site.reply = tiny
    watched.page.goto(site.url + path)
    page = watched.settled()
    told = page.locator("main").inner_text()
    assert "GPU-seconds" in told or "GPU-minutes" in told
    for line in ("article.advice", "#numbers tbody", ".figure"):
        for text in page.locator(line).all_inner_texts():
            assert "< 0.01" not in text
    assert accessible(page) == []


def test_a_remedy_of_a_small_job_says_what_comes_back(site: Site, watched: Watched) -> None:
    site.reply = tiny
    watched.page.goto(site.url + "/advice")
    page = watched.settled()
    cache, publish = page.locator("article.advice").nth(0), page.locator("article.advice").nth(1)
    expect(cache.locator(".gain")).to_contain_text("6.19 GPU-seconds")  # 17.2 hours / 10,000
    expect(publish).to_contain_text("team team-feed: 0.40 GPU-seconds")
    cache.get_by_text("Show the arithmetic").click()
    expect(cache).to_contain_text("3.39 → 3.29")
    expect(cache).to_contain_text("lost GPU-minutes")
    cache.get_by_text("The jobs behind it").click()
    expect(cache.locator("thead")).to_contain_text("GPU-seconds back")
    expect(cache.locator("tbody tr").nth(0)).to_have_text("job-13.244")


def test_a_list_with_many_columns_fits_a_window_of_1280(site: Site, watched: Watched) -> None:
    watched.page.goto(site.url + "/jobs")
    page = watched.settled()
    wide, seen = page.locator(".scroll").evaluate("one => [one.scrollWidth, one.clientWidth]")
    assert wide <= seen
    assert accessible(page) == []
