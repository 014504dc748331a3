"""Answers of ClickHouse as the pages show them."""

from typing import Final

from ettwatch_clickhouse import EmbeddedStore

_PLAIN: Final = ", ".join(
    f"output_format_pretty_{name}"
    for name in (
        "color = 0",
        "row_numbers = 0",
        "grid_charset = 'ASCII'",
        "highlight_digit_groups = 0",
        "single_large_number_tip_threshold = 0",
    )
)


def pretty(store: EmbeddedStore, query: str, settings: str = "") -> list[str]:
    """Return the lines of an answer, without spaces at their ends."""
    handle = store.handle()
    try:
        handle.query("USE ettwatch")
        more = f", {settings}" if settings else ""
        told = handle.query(f"{query}\nSETTINGS {_PLAIN}{more}", "PrettySpaceMonoBlock").bytes().decode()
    finally:
        handle.close()
    return [line.rstrip() for line in told.strip("\n").splitlines()]
