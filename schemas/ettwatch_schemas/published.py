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


def topic_examples() -> Iterator[tuple[str, bytes]]:
    """Yield (name, message) for every published example of what a worker sends, in the order of their names.

    The name is that of the topic, without its prefix, and which example it is: `phases.first`. A dead letter is a
    record as JSON, with `key`, `value` and `headers`; all others are values of records, as they are.
    """
    folder = files("ettwatch_schemas") / "examples" / "topics"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        yield file.name.rpartition(".")[0], file.read_bytes().removesuffix(b"\n")
