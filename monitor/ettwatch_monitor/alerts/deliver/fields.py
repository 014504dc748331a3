"""Fields of the settings of a channel: each read from its node, what is wrong told with its line."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import yaml

from ettwatch_core.nodes import Problem, entries, line_of, text_of, texts_of
from ettwatch_monitor.alerts.deliver.matchers import Matcher, MatcherError, parse_matchers
from ettwatch_monitor.alerts.deliver.pace import Rate
from ettwatch_monitor.alerts.deliver.secret import Secret
from ettwatch_schemas.durations import parse_duration, parse_instant

__all__ = ["duration", "instant", "labels", "matchers", "rate", "secret", "url", "yes"]

_UNITS: Final[Mapping[str, int]] = {"s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_LONGEST: Final = 86_400_000_000

Fields = Mapping[str, yaml.Node]


def yes(fields: Fields, name: str, usual: bool, problems: list[Problem]) -> bool:
    """Return what a field says of yes and no."""
    if name not in fields:
        return usual
    node = fields[name]
    told = node.value.lower() if isinstance(node, yaml.ScalarNode) else ""
    if told not in ("true", "false", "yes", "no", "on", "off"):
        problems.append(Problem(line_of(node), f"{name} must be true or false"))
    return told in ("true", "yes", "on")


def duration(fields: Fields, name: str, usual: int, problems: list[Problem]) -> int:
    """Return a positive duration of at most a day, in microseconds."""
    text = _text(fields, name, problems)
    if text is None:
        return usual
    try:
        value = parse_duration(text)
        if not 0 < value <= _LONGEST:
            raise ValueError(f"{text!r} is not between 0 and a day; write one like 30s, 1m or 2h")
    except ValueError as error:
        problems.append(Problem(line_of(fields[name]), f"{name}: {error}"))
        return usual
    return value


def instant(fields: Fields, name: str, problems: list[Problem]) -> int | None:
    """Return a time in microseconds since the Unix epoch."""
    text = _text(fields, name, problems)
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        problems.append(Problem(line_of(fields[name]), f"{name}: {error}"))
        return None


def rate(fields: Fields, usual: Rate | None, problems: list[Problem]) -> Rate | None:
    """Return how many messages may go in a time, of `20/m`; None for `none`."""
    text = _text(fields, "rate", problems)
    if text is None:
        return usual
    if text.lower() == "none":
        return None
    count, _, unit = text.replace(" ", "").partition("/")
    if not count.isascii() or not count.isdecimal() or not 0 < int(count[:9]) <= 100_000 or unit not in _UNITS:
        reason = f"rate: {text!r} is no rate; write one like 20/m (or /s, /h, /d), at most 100000, or none"
        problems.append(Problem(line_of(fields["rate"]), reason))
        return usual
    return Rate(int(count), _UNITS[unit])


def matchers(fields: Fields, problems: list[Problem]) -> tuple[Matcher, ...]:
    """Return the matchers of the field `match`: a text, or a list of texts that all have to match."""
    if "match" not in fields:
        return ()
    node, found = fields["match"], list[Matcher]()
    for text in texts_of(node, "match", problems):
        try:
            found += parse_matchers(text)
        except MatcherError as error:
            problems.append(Problem(line_of(node), f"match: {error}"))
    return tuple(found)


def labels(fields: Fields, problems: list[Problem]) -> dict[str, str]:
    """Return labels and their values."""
    found: dict[str, str] = {}
    if "labels" in fields:
        for name, _, node in entries(fields["labels"], "labels", problems):
            value = text_of(node, f"label {name!r}", problems)
            if value is not None:
                found[name] = value
    return found


def secret(fields: Fields, name: str, env: Mapping[str, str], problems: list[Problem]) -> Secret | None:
    """Return a secret of the fields `NAME_file` or `NAME_env`; None where there is neither."""
    file, variable = f"{name}_file", f"{name}_env"
    if file in fields and variable in fields:
        problems.append(Problem(line_of(fields[variable]), f"give {file} or {variable}, not both"))
    if file in fields:
        text = _text(fields, file, problems)
        return None if text is None else Secret("file", text, env)
    text = _text(fields, variable, problems)
    return None if text is None else Secret("variable", text, env)


def url(
    fields: Fields, line: int, env: Mapping[str, str], problems: list[Problem], *, hidden: bool = False
) -> Secret | None:
    """Return the address: of `url`, which may stand open where it is not `hidden`, or of `url_file` or `url_env`."""
    kept = secret(fields, "url", env, problems)
    text = _text(fields, "url", problems)
    if text is not None and hidden:
        reason = "the address is a secret here; write it into a file and name that in url_file, or use url_env"
        problems.append(Problem(line_of(fields["url"]), reason))
    elif text is not None and kept is not None:
        problems.append(Problem(line_of(fields["url"]), "the address is given twice; leave out url, or the other one"))
    elif text is not None:
        why = _wrong(text)
        if why is not None:
            problems.append(Problem(line_of(fields["url"]), f"url {why}"))
        return Secret("text", text)
    elif kept is None and not {"url", "url_file", "url_env"} & set(fields):
        names = "url_file or url_env" if hidden else "url, url_file or url_env"
        problems.append(Problem(line, f"no address; give {names}"))
    return kept


def _wrong(text: str) -> str | None:
    # The text itself is told by nobody: it may hold what it should not.
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        return "is no address; write http://HOST:PORT or https://HOST/PATH"
    if parts.username is not None or parts.password is not None:
        return "holds a login; leave it out, and give user with password_file or password_env, or token_file"
    return None


def _text(fields: Fields, name: str, problems: list[Problem]) -> str | None:
    return text_of(fields[name], name, problems) if name in fields else None
