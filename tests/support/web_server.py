"""A server for tests of the page: the built files, and answers that a test chooses. Without a database."""

import json
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel

from ettwatch_monitor.api import shapes as s
from ettwatch_monitor.web import ASSETS
from support import web_advice, web_answers, web_job, web_service

# As strict as the monitor's own.
CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}

_NOTHING: Final[dict[str, Any]] = {name: [] for name in ("groups", "stages", "jobs", "models", "clusters")}
_NO_ATTEMPT: Final[dict[str, Any]] = {
    "attempts": [],
    "stragglers": [],
    "flags": [],
    "hidden_s": {},
    "stages": {},
    "labels": {},
}

Answer = BaseModel | dict[str, Any]
Reply = Callable[["Question"], Answer]


@dataclass(frozen=True, slots=True)
class Question:
    """A request: its path after /api/v1 with names decoded part by part, what is asked, and what was sent."""

    method: str
    parts: tuple[str, ...]
    asked: dict[str, str]
    body: Any = None
    csrf: str | None = None


class Refused(Exception):
    """Answered with a status and a reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def usual(question: Question) -> Answer:
    """Return what a healthy fleet answers."""
    asked, parts = question.asked, question.parts
    match parts:
        case ("me",):
            return web_service.me()
        case ("fleet",):
            return web_answers.fleet(asked.get("by", "team"))
        case ("fleet", "series"):
            return web_answers.series()
        case ("jobs",):
            page = int(asked.get("page", "1"))
            return web_answers.job_page(
                page, int(asked.get("size", "50")), sort=asked.get("sort", "-lost"), text=asked.get("q", "")
            )
        case ("jobs", job):
            return web_job.detail(job)
        case ("jobs", job, "timeline"):
            return web_job.timeline(job)
        case ("teams", name):
            return web_answers.team(name)
        case ("owners", name):
            return web_answers.owner(name)
        case ("compare",):
            return web_answers.compare(asked["kind"], asked["a"], asked["b"])
        case ("alerts",):
            return web_service.alerts()
        case ("alerts", "silences"):
            return web_service.alerts().silences[0]
        case ("advice",):
            return web_advice.advice()
        case ("advice", "what-if"):
            return web_advice.what_if(question.body)
        case ("sql",):
            return web_service.sql()
        case ("login",):
            return web_service.me()
    raise Refused(404, "there is no such thing")


def empty(question: Question) -> Answer:
    """Return what a fleet answers that never ran a job."""
    match question.parts:
        case ("me",):
            return web_service.me(first_us=None, last_us=None, teams=[], models=[], clusters=[], owners=[])
        case ("fleet",):
            return web_answers.fleet().model_copy(update=_NOTHING | {"total": web_answers.nothing(), "before": None})
        case ("teams", name):
            return web_answers.team(name).model_copy(update=_NOTHING | {"total": web_answers.nothing(), "before": None})
        case ("fleet", "series"):
            return web_answers.series().model_copy(update={"points": []})
        case ("jobs",):
            return s.JobPage(total=0, page=1, size=50, sort="-lost", jobs=[])
        case ("jobs", job):
            return web_job.detail(job).model_copy(update=_NO_ATTEMPT)
        case ("jobs", job, "timeline"):
            return web_job.timeline(job).model_copy(update={"segments": [], "phases": [], "marks": []})
        case ("owners", name):
            return web_answers.owner(name).model_copy(update={"stages": [], "lost_gpu_h": 0.0, "series": []})
        case ("alerts",):
            return s.Alerts(alerts=[], silences=[], can_silence=False)
        case ("advice",):
            return web_advice.advice() | {"advice": []}
        case ("sql",):
            return web_service.sql().model_copy(update={"rows": [], "truncated": False})
    return usual(question)


def _set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass
class Site:
    """The server as a test sees it.

    Attributes:
        url: Where it is, without a slash at the end.
        reply: What it answers; a test may put another one in its place.
        asked: What was asked so far.
        answers: While it is not set, only /me is answered.
        first: What a viewer is told at once.
    """

    url: str
    reply: Reply = usual
    asked: list[Question] = field(default_factory=list)
    answers: threading.Event = field(default_factory=_set)
    first: s.Live | None = field(default_factory=web_service.live)
    viewers: list["queue.Queue[str | None]"] = field(default_factory=list)

    def tell(self, news: s.Live) -> None:
        """Send an event to all viewers."""
        for viewer in list(self.viewers):
            viewer.put(f"event: live\nid: {news.number}\ndata: {news.model_dump_json()}\n\n")

    def hang_up(self) -> None:
        """End the streams of all viewers, and let nobody wait for an answer."""
        self.answers.set()
        for viewer in list(self.viewers):
            viewer.put(None)


def _handler(site_of: Callable[[], Site]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(body))),
                ("Content-Security-Policy", CSP),
                ("X-Content-Type-Options", "nosniff"),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _file(self, path: str) -> None:
            known = {f"/{one.relative_to(ASSETS).as_posix()}": one for one in ASSETS.rglob("*") if one.is_file()}
            file = known.get(path, ASSETS / "index.html")
            if path.startswith("/assets/") and path not in known:
                self._send(404, "text/plain", b"")
                return
            self._send(200, TYPES.get(file.suffix, "text/plain") + "; charset=utf-8", file.read_bytes())

        def _stream(self, site: Site) -> None:
            mine: queue.Queue[str | None] = queue.Queue()
            site.viewers.append(mine)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            if site.first is not None:
                mine.put(f"event: live\nid: 1\ndata: {site.first.model_dump_json()}\n\n")
            try:
                while (text := mine.get()) is not None:
                    self.wfile.write(text.encode())
                    self.wfile.flush()
            except OSError:
                pass  # the viewer is gone
            finally:
                site.viewers.remove(mine)
                self.close_connection = True

        def _answer(self) -> None:
            site = site_of()
            split = urlsplit(self.path)
            if not split.path.startswith("/api/v1/"):
                self._file(split.path)
                return
            parts = tuple(unquote(part) for part in re.split("/", split.path.removeprefix("/api/v1/")))
            if parts == ("live",):
                self._stream(site)
                return
            length = int(self.headers.get("Content-Length", "0"))
            body = json.loads(self.rfile.read(length)) if length else None
            asked = {name: values[0] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
            question = Question(self.command, parts, asked, body, self.headers.get("X-CSRF-Token"))
            site.asked.append(question)
            if parts != ("me",):
                site.answers.wait(120)
            try:
                told = site.reply(question)
                status, text = 200, told.model_dump_json() if isinstance(told, BaseModel) else json.dumps(told)
            except Refused as refused:
                status, text = refused.status, json.dumps({"error": str(refused)})
            with suppress(OSError):  # the page may not wait for it
                self._send(status, "application/json", text.encode())

        do_GET = do_POST = do_DELETE = _answer

    return Handler


@contextmanager
def served() -> Iterator[Site]:
    """Serve the page on a free port of this machine."""
    sites: list[Site] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(lambda: sites[0]))
    server.daemon_threads = True
    site = Site(f"http://127.0.0.1:{server.server_port}")
    sites.append(site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.hang_up()
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
