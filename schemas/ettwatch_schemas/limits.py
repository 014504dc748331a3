"""How large things on the wire may be. The limits of single fields stand in fields.py."""

from typing import Final

MAX_EVENT_BYTES: Final = 1_048_576
"""The largest event, in bytes of JSON."""

MAX_MESSAGE_BYTES: Final = 8 * 1_048_576
"""The largest message, in bytes of JSON."""
