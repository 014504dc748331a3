"""The API server over HTTPS: lists in pages, and watches as streams of lines."""

import json
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

import urllib3

from ettwatch_sources.kubernetes.config import Access
from ettwatch_sources.reaching import unreached

_CONNECT_S: Final = 10.0
_READ_S: Final = 60.0
_BLOCK: Final = 64 * 1024
_LONGEST: Final = 16 << 20
_DO: Final = "it is named by the kubeconfig (--kubeconfig, --context), or by the pod's own account"


class ApiError(Exception):
    """The server answered that it will not. `status` is the HTTP status, or the code inside a watch."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Unreachable(Exception):
    """The server could not be reached, or the connection broke."""


class Api:
    """One API server.

    Args:
        access: How to reach it.
        agent: What the client calls itself.
    """

    def __init__(self, access: Access, agent: str = "ettwatch-watch") -> None:
        self._access = access
        self._agent = agent
        context: ssl.SSLContext | None = None
        if access.server.startswith("https://"):
            context = ssl.create_default_context(cadata=access.ca or None)
            if not access.verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if access.client is not None:
                context.load_cert_chain(*access.client)
        self._pool = urllib3.PoolManager(ssl_context=context, retries=False, maxsize=16, block=False)

    @property
    def server(self) -> str:
        """The server's address."""
        return self._access.server

    def close(self) -> None:
        """Close every connection."""
        self._pool.clear()

    def get(self, path: str, params: Mapping[str, str]) -> dict[str, Any]:
        """Return an object. Raises ApiError and Unreachable."""
        response = self._request(path, params, _READ_S, stream=False)
        try:
            value = json.loads(response.data)
        except ValueError:
            if response.status != 200:
                raise ApiError(response.status, "no reason") from None
            raise Unreachable(f"{self.server}{path}: the answer is no JSON") from None
        if response.status != 200:
            raise ApiError(response.status, _message(value))
        if not isinstance(value, dict):
            raise Unreachable(f"{self.server}{path}: the answer is no object")
        return value

    def watch(self, path: str, params: Mapping[str, str], seconds: int) -> Iterator[dict[str, Any]]:
        """Yield the events of a watch until the server ends it. Raises ApiError and Unreachable."""
        told = {**params, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        response = self._request(path, told, float(seconds + 30), stream=True)
        try:
            if response.status != 200:
                try:
                    value = json.loads(response.read(1 << 20))
                except ValueError:
                    value = None
                raise ApiError(response.status, _message(value))
            rest = b""
            while block := response.read1(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                if len(rest) > _LONGEST:
                    raise Unreachable(f"{self.server}{path}: an event is larger than 16 MiB")
                yield from (_event(line, path) for line in lines if line.strip())
            if rest.strip():
                raise Unreachable(f"{self.server}{path}: the connection broke in the middle of an event")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{self.server}{path}: {_short(error)}") from None
        finally:
            response.close()

    def _request(self, path: str, params: Mapping[str, str], read_s: float, stream: bool) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": self._agent, **self._access.headers()}
        try:
            return self._pool.request(
                "GET",
                self.server + path,
                fields=dict(params),
                headers=headers,
                timeout=urllib3.Timeout(connect=_CONNECT_S, read=read_s),
                preload_content=not stream,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(unreached(error, self.server, "API server", _DO)) from None


def _event(line: bytes, path: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        raise Unreachable(f"{path}: an event of the watch is no JSON") from None
    if not isinstance(value, dict):
        raise Unreachable(f"{path}: an event of the watch is no object")
    return value


def _message(value: object) -> str:
    return str(value.get("message") or value.get("reason") or "no reason") if isinstance(value, dict) else "no reason"


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
