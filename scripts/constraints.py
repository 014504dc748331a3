"""Writes constraints.txt: the exact versions that stand in this virtual environment, which are those tested.

With --upgrade, pip first takes the newest versions that pyproject.toml allows. Only what the project and its
extras need is pinned. A package that is wanted on one system only (torch's CUDA libraries on Linux) gets that
as its marker, so that the file reads right; pip ignores a pin that nobody asks for.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "ettwatch"
EXTRAS = ("dev", "trainer")
HEAD = """\
# The versions that are tested, by Python {python} on {system}. Made by `make constraints`, read by pip -c.
"""


def needs(name: str, extras: frozenset[str], system: str) -> Iterator[Requirement]:
    """Yields what the installed package asks for on `system` ("linux", "darwin")."""
    here = {str(key): str(value) for key, value in default_environment().items()}
    here |= {"sys_platform": system, "platform_system": system.capitalize()}
    for text in distribution(name).requires or []:
        wanted = Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate(here | {"extra": e}) for e in extras | {""}):
            yield wanted


def closure(extras: Iterable[str], system: str) -> set[str]:
    """Returns the canonical names of all installed packages that the project, with `extras`, needs on `system`."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(PROJECT, frozenset(extras))]
    while todo:
        package = todo.pop()
        if package in seen:
            continue
        try:
            found = list(needs(*package, system))
        except PackageNotFoundError:  # wanted on that system only: not here, so it cannot be pinned here
            continue
        seen.add(package)
        todo += [(canonicalize_name(need.name), frozenset(need.extras)) for need in found]
    return {name for name, _ in seen} - {PROJECT}


def main() -> int:
    """Writes the file; returns the exit status."""
    if "--upgrade" in sys.argv[1:]:
        pip = [sys.executable, "-m", "pip", "install", "--upgrade", "--upgrade-strategy", "eager"]
        subprocess.run([*pip, "-e", f"{ROOT}[{','.join(EXTRAS)}]"], check=True)
    everywhere, linux = closure(EXTRAS, "darwin"), closure(EXTRAS, "linux")
    lines = [
        f"{name}=={distribution(name).version}" + ("" if name in everywhere else ' ; sys_platform == "linux"')
        for name in sorted(everywhere | linux)
    ]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    head = HEAD.format(python=python, system=sys.platform)
    (ROOT / "constraints.txt").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"constraints.txt: {len(lines)} packages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
