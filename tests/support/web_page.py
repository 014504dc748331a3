"""A page in a browser that is watched: what its console said, and where it asked."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from playwright.sync_api import Page, expect

WEB: Final = Path(__file__).parents[2] / "monitor" / "web"
AXE: Final = WEB / "node_modules" / "axe-core" / "axe.min.js"
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

expect.set_options(timeout=60_000)  # a machine may be busy with something else


class Watched:
    """A page and what is remembered of it.

    Attributes:
        page: The page.
        faults: What the console said, and errors that nobody caught.
        hosts: Whom it asked.
        allowed: Texts of faults that a test expects, such as of an answer that was refused.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        self.hosts: set[str] = set()
        self.allowed: tuple[str, ...] = ()
        page.set_default_timeout(60_000)
        page.on("console", lambda told: self._said(told.type, told.text))
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on(
            "request", lambda request: self.hosts.add(urlsplit(request.url).hostname or urlsplit(request.url).scheme)
        )

    def _asked(self, url: SplitResult) -> None:
        self.hosts.add(url.hostname or url.scheme)

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.faults.append(f"{kind}: {text}")

    def check(self) -> None:
        """Fail where the console said anything unexpected, or another machine was asked."""
        unexpected = [fault for fault in self.faults if not any(text in fault for text in self.allowed)]
        assert not unexpected, unexpected
        assert self.hosts <= {"127.0.0.1", "localhost", "blob", "data", ""}, self.hosts

    def settled(self) -> Page:
        """Wait until nothing loads any more."""
        self.page.locator("main h1").first.wait_for()
        self.page.locator("main .loading").first.wait_for(state="detached")
        return self.page


def accessible(page: Page) -> list[str]:
    """Return what axe finds to be wrong: rule, what, and where."""
    if not AXE.is_file():
        npm = shutil.which("npm")
        assert npm, "needs npm, for the accessibility checks"
        words = (npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
        subprocess.run(words, cwd=WEB, check=True, timeout=240)
    page.evaluate(AXE.read_text() + ";0")
    told: dict[str, Any] = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES
    )
    return [
        f"{one['id']}: {one['help']} at {[node['target'] for node in one['nodes'][:3]]}" for one in told["violations"]
    ]
