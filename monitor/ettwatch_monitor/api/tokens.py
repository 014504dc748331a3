"""The file of tokens: a line each, `ROLE USER TOKEN`; empty lines and those that begin with # say nothing."""

import hashlib
from typing import Final, get_args

from ettwatch_monitor.api.settings import Role, Token

__all__ = ["TokensError", "digest_of", "parse_tokens"]

_SHORTEST: Final = 20
_ROLES: Final = get_args(Role)


class TokensError(Exception):
    """The file of tokens is wrong: where, and what to do. No token is in it."""


def parse_tokens(text: str, source: str) -> tuple[Token, ...]:
    """Read a file of tokens.

    Args:
        text: Its text.
        source: Its name, for messages.

    Raises:
        TokensError: A line is malformed, a token is short or there twice, or there is none.
    """
    found: list[Token] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        place = f"{source}, line {number}"
        if len(words) != 3 or words[0] not in _ROLES:
            raise TokensError(f"{place}: write a role ({' or '.join(_ROLES)}), a user and a token")
        role, user, secret = words
        if len(secret) < _SHORTEST:
            raise TokensError(f"{place}: the token is short; make one of at least {_SHORTEST} random characters")
        token = Token(user, "operator" if role == "operator" else "viewer", digest_of(secret))
        if token.digest in {other.digest for other in found}:
            raise TokensError(f"{place}: this token is there already; give every user one of their own")
        found.append(token)
    if not found:
        raise TokensError(f"{source} holds no token; write lines such as: viewer ada TOKEN")
    return tuple(found)


def digest_of(secret: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
