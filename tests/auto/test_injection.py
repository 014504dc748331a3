"""How the instrumentation gets into a Python, and stays out of its way. Nothing here needs torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from auto.conftest import Run
from ettwatch.injection import FOLDER, injected
from support.spooled import events, kinds, python

LAUNCHED = ["job_submitted", "attempt_started", "attempt_ended", "job_ended"]


def test_what_is_added_to_the_environment() -> None:
    assert injected({}) == {"PYTHONPATH": FOLDER, "ETTWATCH_AUTO": "1"}
    assert injected({"PYTHONPATH": "/a::/b"})["PYTHONPATH"] == f"{FOLDER}:/a::/b"
    again = injected({"PYTHONPATH": f"{FOLDER}:/a"})
    assert again["PYTHONPATH"] == f"{FOLDER}:/a"
    assert os.listdir(FOLDER) in (
        ["sitecustomize.py"],
        ["sitecustomize.py", "__pycache__"],
        ["__pycache__", "sitecustomize.py"],
    )


def test_a_program_without_torch_is_not_made_to_import_it(auto: Run, spool: Path) -> None:
    done = auto(
        """
        import sys, threading
        import json, email.message
        print(sorted({"torch", "numpy", "pydantic", "ettwatch.recorder", "ettwatch.auto.hooks"} & set(sys.modules)))
        print(threading.active_count(), [place for place in sys.path if "inject" in place])
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n1 []\n", "")
    assert kinds(events(spool)) == LAUNCHED


def test_the_sitecustomize_that_was_there_still_runs(auto: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import builtins\nbuiltins.MINE = __file__\nimport json\n")
    done = auto(
        "import sitecustomize, ettwatch.auto, sys\nprint(MINE, sitecustomize.__file__, sitecustomize.json.__name__)",
        env={"PYTHONPATH": str(tmp_path / "mine")},
    )
    mine = str(tmp_path / "mine" / "sitecustomize.py")
    assert (done.stdout, done.stderr) == (f"{mine} {mine} json\n", "")


def test_one_that_fails_fails_as_it_did(auto: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    done = auto("print('goes on')", env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout == "goes on\n"
    assert "ValueError: mine" in done.stderr


def test_a_python_that_does_not_have_the_package_is_instrumented_all_the_same(tmp_path: Path) -> None:
    code = "import sys; print('ettwatch.auto' in sys.modules, [place for place in sys.path if 'producers' in place])"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    bare = [str(tmp_path / "venv" / "bin" / "python"), "-c", code]
    done = subprocess.run(bare, env={**os.environ, **injected({})}, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True []\n", "")


def test_the_children_of_a_child_are_reached(auto: Run) -> None:
    code = """
        import multiprocessing, os, subprocess, sys
        def look(queue): queue.put("ettwatch.auto" in sys.modules)
        if __name__ == "__main__":
            print(subprocess.run([sys.executable, "-c", "import sys; print('ettwatch.auto' in sys.modules)"],
                                 capture_output=True, text=True).stdout.strip())
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=look, args=(queue,))
            process.start(); print(queue.get()); process.join()
    """
    done = auto(code)
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")


def test_disabled_it_does_nothing(auto: Run, spool: Path) -> None:
    done = auto(
        "import sys; print([n for n in sys.modules if n.startswith('ettwatch')])", env={"ETTWATCH_DISABLED": "1"}
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert not spool.exists()


@pytest.mark.parametrize("late", [False, True])
def test_a_module_is_hooked_when_it_is_complete(tmp_path: Path, spool: Path, late: bool) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from pack.deep import work\nDONE = True\n")
    (package / "deep.py").write_text("def work(x): return x\nDONE = True\n")
    code = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        from ettwatch.auto.imports import Imports
        if {late}: import pack
        seen = []
        imports = Imports()
        for name in ("pack", "pack.deep", "pack.missing"):
            imports.when_imported(name, lambda module: seen.append((module.__name__, module.DONE)))
        imports.when_imported("pack.deep", lambda module: 1 / 0)
        import pack
        assert sorted(seen) == [("pack", True), ("pack.deep", True)], seen
        assert pack.__spec__.loader.__class__.__name__ == "SourceFileLoader"
        assert "exec_module" not in vars(pack.__spec__.loader)
        import inspect; assert "return x" in inspect.getsource(pack.work)
        try:
            import pack.missing
        except ModuleNotFoundError as error:
            assert error.name == "pack.missing"
    """
    done = python(code, spool)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("instrumenting pack.deep failed: ZeroDivisionError") == 1
