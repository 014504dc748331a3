"""A command line made from the fields of a dataclass, and back. Needs no torch."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, get_type_hints

T = TypeVar("T")


class ConfigError(ValueError):
    """A setting has a value that cannot work. The text names the setting, the value and what to give."""


class About(NamedTuple):
    """What a setting means, and the least value it may have."""

    text: str
    least: float | None = None


def option_name(setting: str) -> str:
    """`checkpoint_every` -> `--checkpoint-every`."""
    return "--" + setting.replace("_", "-")


def settings_of(kind: type) -> dict[str, tuple[type, About]]:
    """The type and the meaning of each setting, by name: fields are `Annotated[type, About(...)]`."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: (hint.__origin__, hint.__metadata__[0]) for name, hint in hints.items()}


def check_least(config: Any) -> None:
    """Refuse values below the least, and what is no finite number. Raises ConfigError."""
    for name, (_, about) in settings_of(type(config)).items():
        value = getattr(config, name)
        if about.least is not None and not (about.least <= value and math.isfinite(value)):
            raise ConfigError(f"{option_name(name)}: {value} cannot be; give a number of at least {about.least}")


def check_kill(kill_at_step: int, steps: int, fail_rank: int, ranks: int) -> None:
    """Refuse a kill that would never come. Raises ConfigError."""
    if kill_at_step > steps:
        raise ConfigError(f"--kill-at-step: {kill_at_step} is after the last step; give --steps ({steps}) or less")
    if kill_at_step and fail_rank >= ranks:
        raise ConfigError(f"--fail-rank: there is no rank {fail_rank}; give less than --ranks ({ranks})")


def arguments_of(config: Any) -> list[str]:
    """The command line that `parsed` turns into an equal config; settings at their default are left out."""
    given: list[str] = []
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        if value == item.default:
            continue
        if isinstance(value, bool):
            given.append(option_name(item.name if value else f"no_{item.name}"))
        else:
            given += [option_name(item.name), str(value)]
    return given


def parser_of(kind: type, program: str, description: str) -> argparse.ArgumentParser:
    """A command line with an option for each field."""
    made = argparse.ArgumentParser(
        prog=program, description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    defaults = kind()
    for name, (of, about) in settings_of(kind).items():
        how: dict[str, Any] = {"default": getattr(defaults, name), "help": about.text}
        if of is bool:
            how["action"] = argparse.BooleanOptionalAction
        else:
            how |= {"type": of, "metavar": of.__name__.upper()}
        made.add_argument(option_name(name), **how)
    return made


def parsed(kind: type[T], reader: argparse.ArgumentParser, arguments: Sequence[str] | None) -> T:
    """Read a command line (`sys.argv` if None). Exits with code 2 and a message if it cannot work."""
    given = reader.parse_args(arguments)
    try:
        return kind(**vars(given))
    except ConfigError as error:
        reader.error(str(error))
