import types

import ettwatch_schemas


def test_all_is_exact() -> None:
    public = {
        name
        for name, value in vars(ettwatch_schemas).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(ettwatch_schemas.__all__) == sorted(public)


def test_every_public_thing_says_what_it_is() -> None:
    silent = [
        name
        for name in ettwatch_schemas.__all__
        if isinstance(value := getattr(ettwatch_schemas, name), type | types.FunctionType) and not value.__doc__
    ]
    assert silent == []
