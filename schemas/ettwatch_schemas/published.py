"""The published examples: messages of every kind that every consumer must take."""

from collections.abc import Iterator
from importlib.resources import files


def examples() -> Iterator[tuple[str, bytes]]:
    """Yield (name, message) for every published example of version 1, in the order of their names.

    A message is one event, or an array of events of one job.
    """
    folder = files("ettwatch_schemas") / "examples" / "v1"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        yield file.name.removesuffix(".json"), file.read_bytes()
