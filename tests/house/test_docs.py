import re
from pathlib import Path

import pytest

from house.tree import PACKAGES, ROOT, files, text, under

PAGES = [path for path in files() if path.suffix == ".md"]
LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SETTING = re.compile(r"\bETTWATCH_[A-Z0-9_]*[A-Z0-9]\b")
COMMAND = re.compile(r'^(\w[\w-]*) = "ettwatch_app\.commands', re.MULTILINE)
TARGET = re.compile(r"^([a-z-]+):.*## ", re.MULTILINE)
TEXTS = {".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml", ".json", ".jsonl", ".sql", "", ".typed", ".html"}

# Written in two pieces, so that this list does not find itself.
HOSTS = ["pypi" + ".org", "python" + "hosted.org", "maven" + ".org", "maven" + ".apache.org", "npm" + "js.org"]
PLACES = ["/wo" + "rk/", "/ro" + "ot/", "/tmp/ba" + "sh", "sha" + "red/", "pla" + "n/PLAN"]


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {slug(found) for found in re.findall(r"^#+ +(.+)$", FENCED.sub("", text(page)), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(FENCED.sub("", text(page))):
        aim = (ROOT / page.parent / target).resolve() if target else ROOT / page
        assert aim.exists(), f"{page}: {target} is not there"
        assert aim.is_relative_to(ROOT), f"{page}: {target} leads out of the project"
        if anchor and aim.suffix == ".md":
            assert anchor in anchors(aim.relative_to(ROOT)), f"{page}: {target}#{anchor} is no heading"


def test_every_page_of_docs_is_in_the_index() -> None:
    linked = {target for target, _ in LINK.findall(text(Path("docs/index.md")))}
    pages = {str(page.relative_to("docs")) for page in under("docs", suffix=".md")} - {"index.md"}
    assert pages <= linked, f"docs/index.md does not lead to {sorted(pages - linked)}"


def test_no_file_names_a_package_host_or_a_place_of_one_machine() -> None:
    found = [
        f"{path}:{number}: {word}"
        for path in files()
        if path.suffix in TEXTS
        for number, line in enumerate(text(path).splitlines(), 1)
        for word in [*HOSTS, *PLACES]
        if word in line
    ]
    assert not found, "\n".join(found)


def test_every_setting_is_documented() -> None:
    used = {name for path in under(*PACKAGES, suffix=".py") for name in SETTING.findall(text(path))}
    told = {name for page in under("docs", suffix=".md") for name in SETTING.findall(text(page))}
    assert used, "no setting was found in the code: the pattern is wrong"
    assert used <= told, f"no page of docs/ tells of {sorted(used - told)}"
    assert told <= used, f"docs/ tells of {sorted(told - used)}, which no code reads"


def test_every_command_is_documented() -> None:
    commands = {"run", *COMMAND.findall(text(Path("pyproject.toml")))}
    pages = "\n".join(text(page) for page in [Path("README.md"), *under("docs", suffix=".md")])
    assert len(commands) > 5, "the commands were not found in pyproject.toml: the pattern is wrong"
    missing = {name for name in commands if not re.search(rf"\bettwatch {name}\b", pages)}
    assert not missing, f"neither README.md nor docs/ shows ettwatch {sorted(missing)}"


def test_every_make_target_is_documented() -> None:
    targets = set(TARGET.findall(text(Path("Makefile"))))
    told = set(re.findall(r"\bmake ([a-z-]+)", text(Path("CONTRIBUTING.md"))))
    assert {"demo", "demo-lite", "test", "lint", "bench", "soak", "clean"} <= targets
    assert targets - {"help"} <= told, f"CONTRIBUTING.md does not tell of make {sorted(targets - told)}"
