"""One kind of objects, kept in step with the server: listed, then watched from there on.

A watch that ends is taken up where it stopped (bookmarks move that place without a change); where the server has
forgotten it (410 Gone), everything is listed anew, and what is gone meanwhile is told as deleted.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ettwatch_sources.kubernetes.api import Api, ApiError, Unreachable
from ettwatch_sources.kubernetes.common import part, uid_of
from ettwatch_sources.kubernetes.resources import Resource

_PAGE: Final = "500"
_GONE: Final = 410
_NEVER: Final = frozenset({401, 403, 404})
_LONGEST_WAIT_S: Final = 60.0


class Change(NamedTuple):
    """What happened to an object."""

    kind: str
    deleted: bool
    item: dict[str, Any]


class Synced(NamedTuple):
    """Everything of the kind has been told once."""

    kind: str


class Notice(NamedTuple):
    """What people should know: the kind cannot be watched, and why."""

    kind: str
    text: str
    absent: bool
    """Whether the cluster has no such kind, or does not allow to watch it."""


class Reflector:
    """Follows one kind.

    Args:
        api: The server.
        resource: The kind.
        sleep: Waits for some seconds; returns True when it should end.
        watch_s: How long one watch lasts (seconds) before the server is asked for the next.
    """

    def __init__(self, api: Api, resource: Resource, sleep: Callable[[float], bool], watch_s: int = 300) -> None:
        self._api = api
        self._resource = resource
        self._sleep = sleep
        self._watch_s = watch_s
        self._version = ""
        self._other = 0
        self._there: dict[str, dict[str, Any]] = {}

    def run(self) -> Iterator[Change | Synced | Notice]:
        """Yield changes without end, until `sleep` says so."""
        wait = 1.0
        while True:
            try:
                if not self._version:
                    yield from self._list()
                    yield Synced(self._resource.kind)
                before = self._version
                yield from self._watch()
                if self._version != before:
                    wait = 1.0
                pause = 0.0 if self._version != before else 0.1
            except ApiError as error:
                pause = self._refused(error)
                if pause:
                    yield Notice(self._resource.kind, _advice(self._resource, error), error.status in _NEVER)
            except Unreachable as error:
                pause, wait = wait, min(2 * wait, _LONGEST_WAIT_S)
                yield Notice(self._resource.kind, f"{error}; tried again in {pause:.0f} s", False)
            if self._sleep(pause):
                return

    def _refused(self, error: ApiError) -> float:
        """How long to wait after a refusal: 0 for one that only means to list anew."""
        if error.status == _GONE:
            self._version = ""
            return 0.0
        if error.status == 404 and not self._version and self._other < len(self._resource.versions):
            self._other += 1  # an API moves on: another version of it may be there
            return 0.0
        self._other = 0
        return 300.0 if error.status in _NEVER else 15.0

    @property
    def _path(self) -> str:
        path = self._resource.path
        if self._other:
            parts = path.split("/")
            parts[3] = self._resource.versions[self._other - 1]
            path = "/".join(parts)
        return path

    def _list(self) -> Iterator[Change]:
        params = {"limit": _PAGE}
        if self._resource.selector:
            params["labelSelector"] = self._resource.selector
        seen: dict[str, dict[str, Any]] = {}
        while True:
            page = self._api.get(self._path, params)
            for item in page.get("items") or ():
                if isinstance(item, dict) and uid_of(item):
                    seen[uid_of(item)] = _slim(item)
                    yield Change(self._resource.kind, False, item)
            more = part(page, "metadata", "continue")
            if not more:
                break
            params["continue"] = str(more)
        for uid in self._there.keys() - seen.keys():
            yield Change(self._resource.kind, True, self._there[uid])
        self._there = seen
        self._version = str(part(page, "metadata", "resourceVersion") or "0")

    def _watch(self) -> Iterator[Change]:
        params = {"resourceVersion": self._version}
        if self._resource.selector:
            params["labelSelector"] = self._resource.selector
        for event in self._api.watch(self._path, params, self._watch_s):
            kind, item = event.get("type"), event.get("object")
            if not isinstance(item, dict):
                continue
            if kind == "ERROR":
                raise ApiError(int(item.get("code") or 500), str(item.get("message") or item.get("reason") or ""))
            version = str(part(item, "metadata", "resourceVersion") or "")
            if kind in {"ADDED", "MODIFIED", "DELETED"} and uid_of(item):
                if kind == "DELETED":
                    self._there.pop(uid_of(item), None)
                else:
                    self._there[uid_of(item)] = _slim(item)
                yield Change(self._resource.kind, kind == "DELETED", item)
            # Only now: what was not told is watched for again.
            self._version = version or self._version


def _slim(item: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an object, to tell that it is gone."""
    meta = part(item, "metadata")
    return {"metadata": {name: meta[name] for name in ("uid", "name", "namespace", "labels") if name in meta}}


def _advice(resource: Resource, error: ApiError) -> str:
    if error.status == 404:
        return f"the cluster has no {resource.kind}: it is not watched; tried again in 5 minutes"
    if error.status in {401, 403}:
        return (
            f"not allowed to list and watch {resource.path} ({error.message[:200]}); "
            "grant get, list and watch as docs/sources.md shows; tried again in 5 minutes"
        )
    return f"{resource.kind}: {error}; tried again"
