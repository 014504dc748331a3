"""Takes messages to a receiver over HTTP, and tries again where it is told to wait."""

import gzip
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import urllib3

_AGAIN: Final = frozenset({408, 429, 502, 503, 504})
_TIMEOUT_S: Final = 30.0
_LONGEST_WAIT_S: Final = 60.0


class PostError(Exception):
    """The receiver did not take it. The message says why and holds no header."""


class Poster:
    """Posts to one address.

    Args:
        url: The address.
        content_type: Of what is posted.
        headers: More headers, such as an authorization.
        tries: How often one post is tried.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        url: str,
        content_type: str,
        headers: Mapping[str, str],
        tries: int = 6,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._url = url
        self._headers = {**headers, "Content-Type": content_type, "Content-Encoding": "gzip"}
        self._tries = tries
        self._sleep = sleep
        self._pool = urllib3.PoolManager(retries=False)

    def post(self, value: Any) -> dict[str, Any]:
        """Post a value as JSON; return the answer's object, empty where it has none. Raises PostError."""
        return _object(self.send(json.dumps(value, ensure_ascii=False).encode()))

    def send(self, message: bytes) -> bytes:
        """Post a message as it is; return what is answered. Raises PostError."""
        data = gzip.compress(message, compresslevel=3)
        wait = 1.0
        for left in range(self._tries - 1, -1, -1):
            told = 0.0
            try:
                answer = self._pool.request(
                    "POST", self._url, body=data, headers=self._headers, timeout=_TIMEOUT_S, redirect=False
                )
            except (urllib3.exceptions.HTTPError, OSError) as error:
                why = f"{type(error).__name__}: {error}"[:300]
            else:
                if 200 <= answer.status < 300:
                    return answer.data
                why = f"it answers {answer.status}: {answer.data[:200].decode('utf-8', 'replace').strip()}"
                if answer.status not in _AGAIN:
                    break
                after = answer.headers.get("Retry-After", "")
                told = float(after) if after.isdecimal() else 0.0
            if left:
                self._sleep(min(max(wait, told), _LONGEST_WAIT_S))
                wait = min(2 * wait, _LONGEST_WAIT_S)
        raise PostError(f"{self._url}: {why}")


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
