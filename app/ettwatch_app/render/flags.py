"""The flags of a job in words."""

WORDS = {
    "inferred_end": "an attempt ended without a goodbye: its end was inferred from its last event",
    "zombie": "events came from an attempt after its end; they count for nothing",
    "position_reset": "the data position fell while the step rose: a counter was reset; counting went on",
    "rollback": "the data position fell inside an attempt: training went back and redid some work",
    "negative_span": "a phase ended before it started (do clocks differ between hosts?); it counts as no time",
    "id_conflict": "one event id was told with two contents; the lexically smaller one counts",
}


def in_words(flag: str) -> str:
    """What a flag means; the flag itself where it is not known here."""
    return WORDS.get(flag, flag)
