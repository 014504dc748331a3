"""A Kubernetes API server as far as lists and watches go: over real HTTP, with bookmarks, 410 Gone and broken
connections."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class FakeApi:
    """What the cluster holds. Paths are those of collections, such as `/apis/batch/v1/jobs`."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.version = 100
        self.forgotten = 0
        """Watches from before this version get 410 Gone."""
        self.objects: dict[str, dict[str, dict[str, Any]]] = {}
        self.log: list[tuple[int, str, str, dict[str, Any]]] = []
        self.absent: set[str] = set()
        self.forbidden: set[str] = set()
        self.requests: list[tuple[str, dict[str, str], str]] = []
        self.break_after = 0
        """So many watches are broken in the middle of an event."""
        self.stale_pages = 0
        """So many follow-up pages are answered with 410."""
        self.bookmarks = True
        self.token = ""
        self.url = ""

    def put(self, path: str, item: dict[str, Any]) -> None:
        """Make or change an object."""
        with self.lock:
            self.version += 1
            name = item["metadata"]["namespace"] + "/" + item["metadata"]["name"]
            kind = "MODIFIED" if name in self.objects.setdefault(path, {}) else "ADDED"
            item = json.loads(json.dumps(item))
            item["metadata"]["resourceVersion"] = str(self.version)
            self.objects[path][name] = item
            self.log.append((self.version, path, kind, item))
            self.lock.notify_all()

    def delete(self, path: str, name: str) -> None:
        """Remove an object."""
        with self.lock:
            self.version += 1
            item = self.objects[path].pop(name)
            self.log.append((self.version, path, "DELETED", item))
            self.lock.notify_all()

    def spoils(self, what: str) -> bool:
        """Tell whether something is to go wrong once more; `what` counts how often it still does."""
        with self.lock:
            left = getattr(self, what)
            setattr(self, what, max(0, left - 1))
            return bool(left)

    def forget(self) -> None:
        """Compact the history: every watch from before now has to begin anew; those that are open end with 410."""
        with self.lock:
            self.version += 1
            self.forgotten = self.version
            self.log.clear()
            self.lock.notify_all()


def _matches(item: dict[str, Any], selector: str) -> bool:
    return not selector or selector in item["metadata"].get("labels", {})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: FakeApi

    def log_message(self, *args: Any) -> None:
        pass

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        api = self.api
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        api.requests.append((parts.path, query, self.headers.get("Authorization", "")))
        if api.token and self.headers.get("Authorization") != f"Bearer {api.token}":
            self._answer(401, {"kind": "Status", "message": "Unauthorized"})
        elif parts.path in api.absent or parts.path not in api.objects:
            self._answer(404, {"kind": "Status", "message": "the server could not find the requested resource"})
        elif parts.path in api.forbidden:
            self._answer(403, {"kind": "Status", "message": f"cannot list {parts.path} at the cluster scope"})
        elif query.get("watch") == "true":
            self._watch(parts.path, query)
        else:
            self._list(parts.path, query)

    def _list(self, path: str, query: dict[str, str]) -> None:
        api = self.api
        with api.lock:
            found = [item for item in api.objects[path].values() if _matches(item, query.get("labelSelector", ""))]
            version = str(api.version)
        start = int(query.get("continue", "0"))
        if start and api.spoils("stale_pages"):
            self._answer(410, {"kind": "Status", "message": "The provided continue parameter is too old", "code": 410})
            return
        size = min(int(query["limit"]), 2)  # small pages, so that there are several
        meta: dict[str, str] = {"resourceVersion": version}
        if start + size < len(found):
            meta["continue"] = str(start + size)
        self._answer(200, {"kind": "List", "metadata": meta, "items": found[start : start + size]})

    def _watch(self, path: str, query: dict[str, str]) -> None:
        api = self.api
        since = int(query["resourceVersion"])
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self._follow(api, path, query, since)
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _event(self, kind: str, item: dict[str, Any]) -> None:
        line = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        if self.api.spoils("break_after"):
            self._chunk(line[: len(line) // 2])
            self.close_connection = True
            self.connection.close()
            raise ConnectionResetError
        # In two pieces, as networks deliver them.
        self._chunk(line[:7])
        self._chunk(line[7:])

    def _follow(self, api: FakeApi, path: str, query: dict[str, str], since: int) -> None:
        waited = 0.0
        while waited < float(query["timeoutSeconds"]):
            with api.lock:
                if since < api.forgotten:
                    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                    events = [("ERROR", gone)]
                else:
                    new = [entry for entry in api.log if entry[0] > since and entry[1] == path]
                    events = [
                        (kind, item) for _, _, kind, item in new if _matches(item, query.get("labelSelector", ""))
                    ]
                    if new:
                        since = new[-1][0]
                    if api.bookmarks and api.version > since:
                        since = api.version
                        events.append(("BOOKMARK", {"kind": "X", "metadata": {"resourceVersion": str(since)}}))
                if not events:
                    api.lock.wait(0.05)
                    waited += 0.05
            for kind, item in events:
                self._event(kind, item)
                if kind == "ERROR":
                    return


@contextmanager
def served(api: FakeApi) -> Iterator[str]:
    """Serve it; gives its address."""
    handler = type("Handler", (_Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api.url
    finally:
        server.shutdown()
        server.server_close()
