"""Addresses to listen on, as people write them."""

__all__ = ["parse_address"]


def parse_address(text: str) -> tuple[str, int] | None:
    """Return host and port of `HOST:PORT`, `:PORT` (loopback) or `PORT`; None for `off`.

    Raises:
        ValueError: It is no address.
    """
    short = text.strip()
    if short.lower() == "off":
        return None
    host, _, port = short.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise ValueError(f"{text!r} is no address; write HOST:PORT such as 127.0.0.1:9464, or off")
    return host.strip("[]") or "127.0.0.1", int(port)
