"""How the Kafka brokers are reached: addresses, encryption, login; and an administrator's client that never hangs."""

import contextlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

BROKER_VARIABLES: Final[Mapping[str, str]] = {
    "ETTWATCH_KAFKA": "the Kafka brokers, HOST:PORT with commas between them",
    "ETTWATCH_KAFKA_SECURITY": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
    "ETTWATCH_KAFKA_CA": "file with the certificates that sign those of the brokers",
    "ETTWATCH_KAFKA_MECHANISM": "how to log in: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
    "ETTWATCH_KAFKA_USER": "user to log in as",
    "ETTWATCH_KAFKA_PASSWORD": "password of that user",
    "ETTWATCH_KAFKA_PASSWORD_FILE": "file with the password, instead of it",
}
"""Every variable that says how the brokers are reached."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,\[\]]+)(:(\d{1,5}))?")


class BrokersError(Exception):
    """The brokers cannot be used. One line that says which, why, and what to do; no secret is in it."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where the brokers are, and how to get in.

    Attributes:
        brokers: Their addresses, HOST:PORT.
        protocol: As Kafka calls it: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        ca: File with the certificates to trust; None for those of the system.
        mechanism: How to log in, where the protocol is a SASL one.
        user: As whom.
        password: With what; not shown.
    """

    brokers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    ca: str | None = None
    mechanism: str = "PLAIN"
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def read(cls, env: Mapping[str, str], brokers: str | None = None) -> Self:
        """Read it from the variables; `brokers` overrules ETTWATCH_KAFKA. Raises BrokersError."""
        told = brokers if brokers is not None else env.get("ETTWATCH_KAFKA", "")
        addresses = tuple(filter(None, (part.strip() for part in told.split(","))))
        if not addresses:
            raise BrokersError("no Kafka broker is named; give --bootstrap HOST:PORT, or set ETTWATCH_KAFKA")
        for address in addresses:
            match = _ADDRESS.fullmatch(address)
            if match is None or (match[3] and not 0 < int(match[3]) < 65_536):
                raise BrokersError(f"{address!r} is no address of a Kafka broker; write it as HOST:PORT")
        user = env.get("ETTWATCH_KAFKA_USER") or None
        protocol = _choice(env, "ETTWATCH_KAFKA_SECURITY", _PROTOCOLS, "SASL_SSL" if user else "PLAINTEXT")
        mechanism = _choice(env, "ETTWATCH_KAFKA_MECHANISM", _MECHANISMS, "PLAIN")
        if protocol.startswith("SASL") and user is None:
            raise BrokersError(f"{protocol} needs a login; set ETTWATCH_KAFKA_USER and ETTWATCH_KAFKA_PASSWORD")
        ca = env.get("ETTWATCH_KAFKA_CA") or None
        if ca is not None:
            _text_of("ETTWATCH_KAFKA_CA", ca)
        return cls(addresses, protocol, ca, mechanism, user, _password(env))

    def client(self) -> dict[str, Any]:
        """Return it as the settings of any client of kafka-python."""
        settings: dict[str, Any] = {"bootstrap_servers": list(self.brokers), "security_protocol": self.protocol}
        if self.ca is not None:
            settings["ssl_cafile"] = self.ca
        if self.protocol.startswith("SASL"):
            settings |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password or "",
            }
        return settings


def _choice(env: Mapping[str, str], name: str, choices: tuple[str, ...], usual: str) -> str:
    text = env.get(name, "").strip().upper()
    if text and text not in choices:
        raise BrokersError(f"{name}={text!r} is none of {', '.join(choices)}; correct it, or unset it")
    return text or usual


def _password(env: Mapping[str, str]) -> str | None:
    file = env.get("ETTWATCH_KAFKA_PASSWORD_FILE")
    if file:
        return _text_of("ETTWATCH_KAFKA_PASSWORD_FILE", file).rstrip("\r\n")
    return env.get("ETTWATCH_KAFKA_PASSWORD") or None


def _text_of(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is no text"
        raise BrokersError(f"cannot read {file}: {why}; correct {name}") from None


class _Listener(logging.Handler):
    """Keeps what kafka-python says while it connects: its exception tells only that it gave up."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said += record.getMessage() + "\n"


@contextlib.contextmanager
def admin(access: Access, seconds: float = 10) -> Iterator[Any]:
    """A KafkaAdminClient of kafka-python, each call of which ends within `seconds`.

    Raises BrokersError where they are not reached, or stop answering.
    """
    from kafka.admin import KafkaAdminClient

    wait = int(seconds * 1000)
    settings = {**access.client(), "bootstrap_timeout_ms": wait, "request_timeout_ms": wait}
    with connecting(access, lambda: KafkaAdminClient(**settings), seconds) as client:
        yield client


@contextlib.contextmanager
def connecting(access: Access, make: Callable[[], Any], seconds: float = 10) -> Iterator[Any]:
    """A client of kafka-python, open in this block: what it raises there becomes a BrokersError, and it logs nothing.

    Args:
        access: How it reaches the brokers.
        make: Makes it.
        seconds: For which its closing is waited for.
    """
    from kafka.errors import KafkaError

    listener = _Listener()
    logger = logging.getLogger("kafka")
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    client = None
    try:
        client = make()
        yield client
    except (KafkaError, OSError) as error:
        if client is not None and isinstance(error, OSError):
            raise  # of the block itself: kafka-python brings those of its connections into a form of its own
        raise BrokersError(_why(access, listener.said, error, connected=client is not None)) from None
    finally:
        if client is not None:
            # On a lost connection closing may wait for an answer.
            closing = threading.Thread(target=_close, args=(client,), daemon=True)
            closing.start()
            closing.join(seconds)
        logger.removeHandler(listener)
        logger.propagate = propagated


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close()


def _why(access: Access, said: str, error: Exception, *, connected: bool) -> str:
    where = ", ".join(access.brokers)
    if connected:
        if "Timeout" in type(error).__name__ or "Connection lost" in said:
            return f"the Kafka brokers at {where} stopped answering; try again, and look at their logs"
        return f"the Kafka brokers at {where} refused: {error}"
    login = access.protocol.startswith("SASL")
    if "Handshake failed" in said:
        reason = "the encrypted connection was not made; check the port, ETTWATCH_KAFKA_SECURITY and ETTWATCH_KAFKA_CA"
    elif "SaslAuthenticationFailed" in said or ("socket disconnected" in said and login):
        reason = (
            f"they do not let {access.user!r} in (by {access.mechanism}); "
            "check ETTWATCH_KAFKA_USER, ETTWATCH_KAFKA_PASSWORD and ETTWATCH_KAFKA_MECHANISM"
        )
    elif "UnsupportedSaslMechanism" in said:
        reason = f"they know no login by {access.mechanism}; check ETTWATCH_KAFKA_MECHANISM"
    elif "IllegalSaslState" in said:
        reason = "this port takes no login; check the port, and ETTWATCH_KAFKA_SECURITY"
    elif "ECONNREFUSED" in said:
        reason = "nothing listens there; is the broker up, the port right?"
    elif "DNS" in said:
        reason = "there is no such host; is the name right?"
    elif "socket disconnected" in said:
        reason = "they hang up; does this port want encryption or a login? Check ETTWATCH_KAFKA_SECURITY"
    else:
        reason = "they do not answer in time; is this a Kafka port, and the network open?"
    return f"cannot use the Kafka brokers at {where}: {reason}"
