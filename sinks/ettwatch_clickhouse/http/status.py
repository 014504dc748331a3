"""ClickHouse's error numbers as HTTP statuses, and formats as content types, as a ClickHouse server has them."""

from typing import Final

__all__ = ["content_type", "http_status"]

_STATUS: Final[dict[int, int]] = {
    **dict.fromkeys((192, 193, 194), 401),
    **dict.fromkeys((497, 516, 481), 403),
    **dict.fromkeys((46, 47, 50, 56, 60, 63, 81, 115, 336, 372), 404),
    **dict.fromkeys(
        (6, 25, 26, 27, 36, 37, 38, 41, 43, 53, 62, 72, 73, 80, 117, 131, 211, 376, 456, 457, 467, 675), 400
    ),
    **dict.fromkeys((159,), 408),
    **dict.fromkeys((229, 128), 413),
    **dict.fromkeys((48,), 501),
    **dict.fromkeys((202, 762), 429),
    **dict.fromkeys((373,), 409),
    381: 411,
}

_TYPES: Final = {
    "json": "application/json; charset=UTF-8",
    "jsoncompact": "application/json; charset=UTF-8",
    "jsoneachrow": "application/x-ndjson; charset=UTF-8",
    "csv": "text/csv; charset=UTF-8; header=absent",
    "csvwithnames": "text/csv; charset=UTF-8; header=present",
    "tabseparated": "text/tab-separated-values; charset=UTF-8",
    "tsv": "text/tab-separated-values; charset=UTF-8",
    "native": "application/octet-stream",
    "rowbinary": "application/octet-stream",
    "arrow": "application/octet-stream",
    "arrowstream": "application/octet-stream",
    "parquet": "application/octet-stream",
}


def http_status(code: int) -> int:
    """Return the HTTP status for an error number; 500 for what is nobody's mistake."""
    return _STATUS.get(code, 500)


def content_type(form: str) -> str:
    """Return the content type of a format."""
    known = _TYPES.get(form.lower())
    if known:
        return known
    if form.lower().startswith(("tabseparated", "tsv")):
        return _TYPES["tsv"]
    if form.lower().startswith("json"):
        return _TYPES["json"]
    return "text/plain; charset=UTF-8"
