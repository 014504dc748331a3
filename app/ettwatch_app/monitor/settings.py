"""From options and variables to the settings of the monitor."""

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ettwatch_app.commands._shared import Refused

if TYPE_CHECKING:
    from ettwatch_monitor.api.settings import MonitorSettings, Network, Token

__all__ = ["DEFAULT_LISTEN", "parse_listen", "settings_of"]

DEFAULT_LISTEN: Final = "127.0.0.1:9467"
_OUTBOX: Final = "outbox.sqlite"


def parse_listen(text: str) -> tuple[str, int]:
    """Read HOST:PORT. Raises Refused."""
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535 or ("[" in host or "]" in host):
        raise Refused(f"--listen {text!r} is no address; write one such as {DEFAULT_LISTEN}")
    return host, int(port)


def settings_of(
    *,
    host: str,
    tokens: Path | None,
    proxy_header: str | None,
    proxies: Sequence[str],
    operators: Sequence[str],
    hosts: Sequence[str],
    secure: bool,
    anybody: bool,
    alert_state: Path | None,
    audit: Path | None,
    demo: bool,
) -> "MonitorSettings":
    """Bring options together. Raises Refused where they do not fit each other, or leave the page open to anybody."""
    from ettwatch_monitor.api.settings import MonitorSettings

    if proxy_header is not None and not proxies:
        raise Refused("--proxy-header needs --proxy-from: from where the header is believed, such as 10.0.0.0/8")
    if proxies and proxy_header is None:
        raise Refused("--proxy-from needs --proxy-header: the header in which the proxy names the user")
    settings = MonitorSettings(
        tokens=_tokens(tokens) if tokens is not None else (),
        proxy_header=proxy_header,
        proxies=tuple(_network(text) for text in proxies),
        operators=frozenset(operators),
        hosts=frozenset(name.lower() for name in hosts),
        secure=secure,
        outbox=alert_state / _OUTBOX if alert_state is not None else None,
        audit=audit,
        demo=demo,
    )
    if not settings.guarded and not anybody and not _of_this_machine(host):
        raise Refused(
            f"anybody who reaches {host} could read all there is; give --tokens FILE or --proxy-header NAME, "
            "or say --anybody"
        )
    return settings


def _tokens(file: Path) -> "tuple[Token, ...]":
    from ettwatch_monitor.api.tokens import TokensError, parse_tokens

    try:
        return parse_tokens(file.read_text(encoding="utf-8"), str(file))
    except TokensError as error:
        raise Refused(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Refused(f"cannot read the tokens in {file}: {why}; correct --tokens") from None


def _network(text: str) -> "Network":
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise Refused(f"--proxy-from {text!r} is no address or network; write one such as 10.0.0.0/8") from None


def _of_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
