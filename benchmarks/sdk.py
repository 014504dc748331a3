"""What the recorder costs a trainer: calls, import, memory, disk. Each figure beside that of doing without, in turns.

Writes benchmarks/results/sdk.json. Run: python benchmarks/sdk.py [--rounds 9]
The cost of the automatic instrumentation is measured by sdk_auto.py, where torch is installed.
"""

import argparse
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from statistics import median
from typing import Any

from _common import save
from _pairs import each_call, extra_at, in_turns, quantile
from ettwatch.default import open_recorder
from ettwatch.identity import Given
from ettwatch.recorder import Recorder

ROOT = Path(__file__).resolve().parent.parent
CALLS = 20_000
PHASES = 3_000

PROBE = """
import time
begun = time.perf_counter()
{code}
taken = time.perf_counter() - begun
with open("/proc/self/statm") as file:
    print(taken, int(file.read().split()[1]) * {page})
"""


class Bare:
    """A trainer's own counter: what a step costs that tells nobody."""

    def step(self, n_samples: int = 1) -> None:
        pass


@contextmanager
def recorder(env: dict[str, str]) -> Iterator[Recorder]:
    """Give a recorder in the middle of its loop."""
    with tempfile.TemporaryDirectory() as folder:
        told = {"ETTWATCH_SPOOL": folder, "ETTWATCH_EXIT_S": "0", **env}
        rec = open_recorder(Given(job="bench"), told)
        rec.training_started(position=0)
        try:
            yield rec
        finally:
            rec.end()


def steps(env: dict[str, str], rounds: int) -> dict[str, float]:
    """`step()` beside a bare call."""
    with recorder(env) as rec:
        bare = Bare()
        one, two = in_turns(
            lambda: each_call(lambda: bare.step(32), CALLS), lambda: each_call(lambda: rec.step(32), CALLS), rounds
        )
    return {
        "bare_median_us": median(quantile(each, 0.5) for each in one),
        "step_median_us": median(quantile(each, 0.5) for each in two),
        "bare_p999_us": median(quantile(each, 0.999) for each in one),
        "step_p999_us": median(quantile(each, 0.999) for each in two),
        "extra_p999_us": extra_at(0.999, one, two),
    }


def phases(env: dict[str, str], rounds: int) -> dict[str, float]:
    """A phase, its two events in the spool folder, beside the same two lines written by nothing but os.write."""
    with recorder(env) as rec, tempfile.TemporaryFile() as file:
        number, line = file.fileno(), b"x" * 220 + b"\n"

        def write() -> None:
            os.write(number, line)
            os.write(number, line)

        def phase() -> None:
            with rec.phase("wasted_training.evaluation"):
                pass

        one, two = in_turns(lambda: each_call(write, PHASES), lambda: each_call(phase, PHASES), rounds)
    return {
        "two_writes_median_us": median(quantile(each, 0.5) for each in one),
        "phase_median_us": median(quantile(each, 0.5) for each in two),
        "phase_p99_us": median(quantile(each, 0.99) for each in two),
    }


def closed_port() -> str:
    """Return an address of this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def probe(code: str, env: dict[str, str]) -> tuple[float, float]:
    """Run code in a new interpreter; return the seconds it took there, and the bytes resident after it."""
    text = PROBE.format(code=code, page=os.sysconf("SC_PAGE_SIZE"))
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, **env}, capture_output=True, text=True, check=True
    )
    seconds, resident = done.stdout.split()[-2:]
    return float(seconds), float(resident)


def starts(rounds: int) -> dict[str, float]:
    """Import, and import with init, beside an interpreter that does nothing."""
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        env = {"ETTWATCH_SPOOL": folder, "ETTWATCH_EXIT_S": "0"}
        for _ in range(rounds):
            _, bare = probe("pass", env)
            taken, resident = probe("import ettwatch", env)
            figures.setdefault("import_ms", []).append(1000 * taken)
            figures.setdefault("import_resident_mb", []).append((resident - bare) / 1e6)
            taken, resident = probe("import ettwatch; ettwatch.init(job='bench')", env)
            figures.setdefault("import_and_init_ms", []).append(1000 * taken)
            figures.setdefault("import_and_init_resident_mb", []).append((resident - bare) / 1e6)
    return {name: median(values) for name, values in figures.items()}


def installed() -> dict[str, float]:
    """Return the size on disk of the base install: this package, as its wheel has it, and all that it asks for."""
    names = runpy.run_path(str(ROOT / "scripts/constraints.py"))["closure"]((), sys.platform)
    sizes = {}
    for name in sorted(names):
        files = {Path(str(file.locate())) for file in distribution(name).files or [] if ".." not in file.parts}
        sizes[f"{name}_mb"] = sum(path.stat().st_size for path in files if path.is_file()) / 1e6
    packages = runpy.run_path(str(ROOT / "tests/house/tree.py"))["PACKAGES"]
    own = [path for folder in packages for path in (ROOT / folder).rglob("*") if path.suffix != ".pyc"]
    sizes["ettwatch_mb"] = sum(path.stat().st_size for path in own if path.is_file()) / 1e6
    return {"all_mb": sum(sizes.values()), **sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    results: dict[str, dict[str, Any]] = {}
    for name, env in {"files": {}, "kafka_down": {"ETTWATCH_KAFKA": closed_port()}}.items():
        print(f"calls, {name} ...", flush=True)
        results[f"step_{name}"] = steps(env, rounds)
        results[f"phase_{name}"] = phases(env, rounds)
    print("starts ...", flush=True)
    results["start"] = starts(rounds)
    results["install"] = installed()
    limits: dict[str, bool] = {}
    for name in ("files", "kafka_down"):
        step, phase = results[f"step_{name}"], results[f"phase_{name}"]
        limits |= {
            f"{name}: step_median_us at most 1": step["step_median_us"] <= 1,
            f"{name}: extra_p999_us at most 5": step["extra_p999_us"] <= 5,
            f"{name}: phase_median_us at most 30": phase["phase_median_us"] <= 30,
        }
    limits |= {
        "import_ms at most 120": results["start"]["import_ms"] <= 120,
        "import_resident_mb at most 25": results["start"]["import_resident_mb"] <= 25,
        "install all_mb at most 25": results["install"]["all_mb"] <= 25,
    }
    save("sdk", results, limits)


if __name__ == "__main__":
    main()
