"""Virtual environments that hold the wheel and exactly what it asks for."""

import runpy
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from house.tree import ROOT


class Environment:
    """A new virtual environment with the wheel and, of each distribution that it needs with `extras`, links to
    the files of the one that is installed here. As exact as an install by pip, in a second and without network."""

    def __init__(self, folder: Path, wheel: Path, *extras: str) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (self.packages,) = folder.glob("lib/python*/site-packages")
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "-q"]
        subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True)
        needs = runpy.run_path(str(ROOT / "scripts/constraints.py"))["closure"]
        for name in needs(extras, sys.platform):
            self._link(name)

    def _link(self, name: str) -> None:
        for file in distribution(name).files or []:
            if ".." in file.parts:  # a script in bin/: not needed
                continue
            link = self.packages / file
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():  # some files belong to two distributions
                link.symlink_to(Path(str(file.locate())).resolve())

    @property
    def megabytes(self) -> float:
        """What all packages take on the disk, this one's too."""
        return sum(path.stat().st_size for path in self.packages.rglob("*") if path.is_file()) / 1e6

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, in its folder."""
        program = str(self.folder / "bin" / command[0])
        return subprocess.run(
            [program, *command[1:]], cwd=self.folder, capture_output=True, text=True, check=False, timeout=300
        )

    def python(self, code: str) -> str:
        """Returns what the code prints; it must not fail."""
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout
