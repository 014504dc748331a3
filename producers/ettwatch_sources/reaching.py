"""Why an HTTP server could not be reached, and what to do about it, in one line."""

import socket
import ssl

import urllib3
from urllib3.exceptions import ConnectTimeoutError, LocationValueError, NewConnectionError, ReadTimeoutError, SSLError


def unreached(error: Exception, address: str, what: str, do: str) -> str:
    """Return the line.

    Args:
        error: What urllib3 raised, without retries.
        address: Whom it was to reach.
        what: What should be there, such as `dashboard`.
        do: How to name another address.
    """
    cause = error.__cause__
    if isinstance(cause, ConnectionRefusedError):
        return f"nothing listens at {address}; is the {what} up, the port right? {do}"
    if isinstance(cause, socket.gaierror):
        return f"the host in {address} is not known ({cause.strerror}); {do}"
    if isinstance(error, NewConnectionError) and isinstance(cause, OSError):
        return f"{address} cannot be reached from here: {cause.strerror or cause}; {do}"
    if isinstance(error, ReadTimeoutError):
        return f"{address} takes connections and does not answer; is it the {what}? {do}"
    if isinstance(error, ConnectTimeoutError):
        return f"{address} does not answer; is the {what} up, and does no firewall stand between? {do}"
    if isinstance(error, SSLError):
        return f"{address}: {_untrusted(error)}; {do}"
    if isinstance(error, LocationValueError):
        return f"{address!r} is no address; {do}"
    if isinstance(error, urllib3.exceptions.ProtocolError):
        return f"{address} ended the connection without an answer; is it the {what}? {do}"
    return f"{address}: {type(error).__name__}: {error}"[:300] + f"; {do}"


def _untrusted(error: SSLError) -> str:
    inner = error.args[0] if error.args else error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {inner.verify_message}"
    reason = getattr(inner, "reason", None)
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "no TLS is spoken there; does its address begin with http://?"
    return f"no TLS connection comes about ({reason or inner})"
