"""Whether the dead letters are exactly the poison: by origin, with the original bytes and a fitting code."""

from collections import Counter
from collections.abc import Iterable, Mapping

from confluent_kafka import Message

from support.pipeline_compare import Comparison
from support.pipeline_feed import Origin, Record

__all__ = ["compare_letters"]


def compare_letters(refused: Mapping[Origin, Record], letters: Iterable[Message], out: Comparison) -> None:
    """Compare what was refused with what had to be. A letter may come twice, after a crash: that is counted."""
    found: Counter[Origin] = Counter()
    for letter in letters:
        headers = _headers(letter)
        if headers.get("ettwatch.handled"):
            continue
        index = headers.get("ettwatch.index", "")
        origin = Origin(
            int(headers["ettwatch.partition"]), int(headers["ettwatch.offset"]), int(index) if index else None
        )
        found[origin] += 1
        record = refused.get(origin)
        code = headers.get("ettwatch.code", "")
        if record is None:
            out.differ(f"dead letter of {origin}, which is good: {code}, {headers.get('ettwatch.reason')}")
        else:
            assert record.bad is not None
            if record.bad.codes and code not in record.bad.codes:
                out.differ(f"dead letter of {origin} ({record.bad.name}) has the code {code}, not {record.bad.codes}")
            if (letter.key(), letter.value()) != (record.key, record.value):
                out.differ(f"dead letter of {origin} ({record.bad.name}) has other bytes than were sent")
    out.letters += len(found)
    out.doubled_letters += sum(found.values()) - len(found)
    for origin in refused.keys() - found.keys():
        bad = refused[origin].bad
        out.differ(f"no dead letter of {origin} ({bad.name if bad else ''})")


def _headers(letter: Message) -> dict[str, str]:
    told = letter.headers() or []
    pairs = told.items() if isinstance(told, dict) else told
    return {str(name): value.decode() if isinstance(value, bytes) else str(value or "") for name, value in pairs}
