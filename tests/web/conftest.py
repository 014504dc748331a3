"""A real Chromium, and the page on a server whose answers a test chooses."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from support.web_page import Watched
from support.web_server import Site, served
from web.replies import usual


def chromium() -> str | None:
    """Where Chromium is; None where it is not installed."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each module, and no longer: Playwright's event loop counts as running until it is stopped, and while it
    does nothing else in the process may run a loop."""
    path = chromium()
    if path is None:
        pytest.skip("needs apt-get install chromium")
    # Root has no sandbox; the pages are our own.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=[*options, "--disable-gpu", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as one:
        one.reply = usual
        yield one


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """A fresh page of 1280 px. At the end nothing may have been said on its console, and nothing asked elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    one = Watched(context.new_page())
    yield one
    context.close()
    one.check()


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page
