"""The built page: it is that of its sources, small, asks nobody else, and needs nothing that a strict policy forbids.

Whether the sources give these very bytes is checked by `scripts/web.sh --check`, which needs Node.
"""

import gzip
import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from ettwatch_monitor.web import ASSETS

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "monitor" / "web"
MOST_BYTES: Final = 500_000
"""Compressed, for the whole page."""
# Names of XML, and where React explains its errors: never asked.
NAMES: Final = re.compile(r"http://www\.w3\.org/\S*")


def test_it_is_what_the_sources_give() -> None:
    files = sorted(path.relative_to(SOURCES).as_posix() for path in (SOURCES / "src").rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for name in ("build.mjs", "package-lock.json", *files):
        digest.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    built = (ASSETS / "SOURCES.txt").read_text().split()[-1]
    assert built == digest.hexdigest(), "the page was not built from these sources; run `make web`"


def test_its_types_are_those_of_the_api() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "web_types.py"], capture_output=True, text=True, check=True, timeout=60
    )
    assert made.stdout == (SOURCES / "src" / "types.ts").read_text(), "shapes of the API changed; run `make web`"


def test_it_weighs_little() -> None:
    weight = sum(len(gzip.compress(path.read_bytes())) for path in ASSETS.rglob("*") if path.is_file())
    assert weight <= MOST_BYTES


def test_the_first_page_names_files_that_are_there_and_nothing_inline() -> None:
    html = (ASSETS / "index.html").read_text()
    named = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert len(named) == 4
    for name in named:
        assert (ASSETS / name.removeprefix("/")).is_file(), name
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)


def test_it_asks_nobody_else() -> None:
    for path in ASSETS.rglob("*"):
        if path.suffix in {".js", ".css", ".html", ".svg"}:
            others = re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]\S{0,40}", NAMES.sub("", path.read_text()))
            assert not others, (path.name, others)


def test_versions_are_pinned_exactly() -> None:
    wanted = re.findall(r'"[@a-z/-]+": "([^"]+)"', (SOURCES / "package.json").read_text().partition("dependencies")[2])
    assert wanted
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", one) for one in wanted), wanted


def test_a_palette_can_be_told_apart_by_everyone() -> None:
    """Each two colours of components differ in brightness or hue also without red or green (Viénot, Brettel, 1999)."""
    css = (SOURCES / "src" / "style.css").read_text()
    for block in re.findall(r":root[^{]*\{([^}]*--c-scheduling[^}]*)\}", css):
        colours = dict(re.findall(r"--c-(\w+): (#[0-9a-f]{6})", block))
        assert len(colours) == 7
        for kind in ("whole", "protan", "deutan"):
            seen = {name: _seen(colour, kind) for name, colour in colours.items()}
            near = [
                (a, b, round(distance, 1))
                for a, x in seen.items()
                for b, y in seen.items()
                if a < b and (distance := sum((p - q) ** 2 for p, q in zip(x, y, strict=True)) ** 0.5) < 20
            ]
            assert not near, (kind, near)


def _seen(colour: str, kind: str) -> tuple[float, float, float]:
    """Return CIE L*a*b* of a colour as somebody sees it."""
    linear = [((int(colour[at : at + 2], 16) / 255 + 0.055) / 1.055) ** 2.4 for at in (1, 3, 5)]
    if kind != "whole":
        r, g, b = linear
        long, middle, short = (
            17.8824 * r + 43.5161 * g + 4.11935 * b,
            3.45565 * r + 27.1554 * g + 3.86714 * b,
            0.0299566 * r + 0.184309 * g + 1.46709 * b,
        )
        if kind == "protan":
            long = 2.02344 * middle - 2.52581 * short
        else:
            middle = 0.494207 * long + 1.24827 * short
        linear = [
            max(0.080944 * long - 0.130504 * middle + 0.116721 * short, 0),
            max(-0.0102485 * long + 0.0540194 * middle - 0.113615 * short, 0),
            max(-0.000365294 * long - 0.00412163 * middle + 0.693513 * short, 0),
        ]
    r, g, b = linear
    x, y, z = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    fx, fy, fz = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)
