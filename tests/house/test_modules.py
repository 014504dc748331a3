import ast
import importlib
import inspect

import pytest

from house.tree import PACKAGES, text, under

LONGEST = 300
# Modules that are one table or one subject, and would only be harder to read in two.
LONGER: dict[str, int] = {
    "streams/ettwatch_faust/engine.py": 350,
    "streams/ettwatch_faust/lane.py": 320,
    "streams/ettwatch_faust/windows/engine.py": 305,
}

CODE = [str(path) for path in under(*PACKAGES, "scripts", "benchmarks", suffix=".py")]
# Programs talk to people; a few modules of libraries are programs, too.
TALKS = (
    "app/",
    "scripts/",
    "benchmarks/",
    "producers/ettwatch_trainer/lines.py",
    "producers/ettwatch_trainer/record.py",
    "schemas/ettwatch_schemas/jsonschema.py",
)
QUIET = [name for name in CODE if not name.startswith(TALKS)]


@pytest.mark.parametrize("name", CODE)
def test_a_module_says_what_it_is_and_stays_short(name: str) -> None:
    source = text_of(name)
    assert ast.get_docstring(ast.parse(source)), f"{name} has no docstring"
    lines = source.count("\n")
    assert lines <= LONGER.get(name, LONGEST), f"{name} has {lines} lines: split it by its nouns and verbs"


@pytest.mark.parametrize("name", QUIET)
def test_a_library_prints_nothing(name: str) -> None:
    calls = [node for node in ast.walk(ast.parse(text_of(name))) if isinstance(node, ast.Call)]
    prints = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert not prints, f"{name}: print() in line {prints}"


def test_the_list_of_longer_modules_is_current() -> None:
    for name, limit in LONGER.items():
        assert LONGEST < text_of(name).count("\n") <= limit


@pytest.mark.parametrize("package", [folder.rsplit("/", 1)[1] for folder in PACKAGES])
def test_the_public_door_of_a_package_is_exact(package: str) -> None:
    door = importlib.import_module(package)
    names = list(getattr(door, "__all__", ()))
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(door, name, None) is not None, f"{package}.__all__ names {name}, which is not there"
    unlisted = [
        name
        for name, value in vars(door).items()
        if not name.startswith("_") and name not in names and not inspect.ismodule(value)
    ]
    assert not unlisted, f"{package} shows {unlisted} without naming them in __all__"


def text_of(name: str) -> str:
    return text(next(path for path in under(*PACKAGES, "scripts", "benchmarks") if str(path) == name))
