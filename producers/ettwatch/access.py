"""How the Kafka brokers are reached: addresses, encryption, login, and why they were not."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

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

    def hosts(self) -> list[tuple[str, int]]:
        """Return the addresses as host and port; without a port that of Kafka, 9092."""
        found = []
        for address in self.brokers:
            match = _ADDRESS.fullmatch(address)
            if match is not None:
                found.append((match[1].strip("[]"), int(match[3] or 9092)))
        return found

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

    def why_unusable(self, said: str) -> str:
        """Return one line on why the brokers cannot be used, from what kafka-python logged while it tried."""
        login = self.protocol.startswith("SASL")
        if "Handshake failed" in said:
            reason = (
                "the encrypted connection was not made; check the port, ETTWATCH_KAFKA_SECURITY and ETTWATCH_KAFKA_CA"
            )
        elif "SaslAuthenticationFailed" in said or ("socket disconnected" in said and login):
            reason = (
                f"they do not let {self.user!r} in (by {self.mechanism}); "
                "check ETTWATCH_KAFKA_USER, ETTWATCH_KAFKA_PASSWORD and ETTWATCH_KAFKA_MECHANISM"
            )
        elif "UnsupportedSaslMechanism" in said:
            reason = f"they know no login by {self.mechanism}; check ETTWATCH_KAFKA_MECHANISM"
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
        return f"cannot use the Kafka brokers at {', '.join(self.brokers)}: {reason}"


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
        with open(file, encoding="utf-8") as text:
            return text.read()
    except (OSError, UnicodeDecodeError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is no text"
        raise BrokersError(f"cannot read {file}: {why}; correct {name}") from None
