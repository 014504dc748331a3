"""Requests that want to read files, to wear the server out, or to act as somebody else."""

import contextlib
import json
import socket
import time
from typing import Final
from urllib.parse import quote

import pytest

from support.monitor import EVIL_JOB, EVIL_TEAM, FROM, OPERATOR, TO, VIEWER, Client, Served

TRAVERSALS: Final = (
    "/../secret.txt",
    "/..%2fsecret.txt",
    "/%2e%2e/secret.txt",
    "/%2e%2e%2fsecret.txt",
    "/..%5csecret.txt",
    "/static/../../secret.txt",
    "//etc/passwd.txt",
    "/%2fetc%2fpasswd.txt",
    "/app-1a2b3c4d.js/../../secret.txt",
    "/....//secret.txt",
    "/\u2025/secret.txt".encode().decode("latin-1"),
)
GUARDED: Final = (
    ("GET", "me"),
    ("GET", "fleet"),
    ("GET", "jobs"),
    ("GET", "jobs/worked-example"),
    ("GET", "alerts"),
    ("GET", "live"),
    ("GET", "export/jobs.csv"),
    ("POST", "sql"),
    ("POST", "alerts/silences"),
    ("GET", "/metrics"),
)


def raw(client: Client, data: bytes, wait_s: float = 60.0) -> bytes:
    """Send bytes, and return all that comes back until the other side ends."""
    host, port = client.place.split(":")
    with socket.create_connection((host, int(port)), timeout=wait_s) as connection:
        found = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            while piece := connection.recv(65_536):
                found += piece
        return found


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_to_a_file_of_the_machine(fleet: Served, path: str) -> None:
    wanted = f"GET {path} HTTP/1.1\r\nHost: {fleet.plain.place}\r\nConnection: close\r\n\r\n"
    answer = raw(fleet.plain, wanted.encode("latin-1"))
    assert b"a secret of the machine" not in answer
    assert b"root:" not in answer
    assert answer.split(b" ")[1] in (b"400", b"404"), answer[:100]


def test_the_page_and_its_files_are_served_with_the_right_headers(fleet: Served) -> None:
    page = fleet.plain.ask("/jobs/some-job")
    assert (page.status, page.headers["cache-control"]) == (200, "no-cache")
    assert "'unsafe" not in page.headers["content-security-policy"]
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["x-frame-options"] == "DENY"
    file = fleet.plain.ask("/app-1a2b3c4d.js")
    assert "immutable" in file.headers["cache-control"]
    assert file.headers["content-type"].startswith("text/javascript")
    again = fleet.plain.ask("/app-1a2b3c4d.js", headers={"If-None-Match": file.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    for path in ("fleet", "nothing", "jobs/none"):
        answer = fleet.plain.ask(path)
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(("method", "path"), GUARDED)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong-token-0123456789"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Basic {VIEWER}"},
        {"Authorization": f"Bearer {VIEWER}x"},
        {"Cookie": "ettwatch_session=guessed"},
        {"X-Forwarded-User": "eve"},
    ],
)
def test_without_the_right_token_nothing_is_told(
    fleet: Served, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = fleet.guarded.ask(path, method=method, body={} if method == "POST" else None, headers=headers)
    assert answer.status == 401
    assert set(answer.json) == {"error"}
    assert VIEWER.encode() not in answer.body


def test_a_viewer_changes_nothing(fleet: Served) -> None:
    body = {"matchers": 'team="ads"', "hours": 1}
    assert fleet.viewer().ask("alerts/silences", method="POST", body=body).status == 403
    assert fleet.viewer().ask("alerts/silences/1", method="DELETE").status == 403
    assert fleet.viewer().get("alerts")["can_silence"] is False


def test_an_operator_silences_and_that_is_kept_for_the_record(fleet: Served) -> None:
    operator = fleet.operator()
    body = {"matchers": 'team="ads"', "hours": 1.5, "comment": "line\nbreak"}
    made = operator.ask("alerts/silences", method="POST", body=body)
    assert made.status == 201, made.body
    number = made.json["number"]
    assert [row["number"] for row in operator.get("alerts")["silences"]] == [number]
    assert operator.ask(f"alerts/silences/{number}", method="DELETE").status == 204
    assert operator.ask(f"alerts/silences/{number}", method="DELETE").status == 404
    assert operator.get("alerts")["silences"] == []
    wrong = operator.ask("alerts/silences", method="POST", body={"matchers": "team=~(", "hours": 1})
    assert wrong.status == 422
    lines = [json.loads(line) for line in (fleet.folder / "audit.jsonl").read_text().splitlines()]
    assert [(one["user"], one["result"], one["number"]) for one in lines] == [
        ("bob", "kept", number),
        ("bob", "ended", number),
    ]
    assert OPERATOR not in (fleet.folder / "audit.jsonl").read_text()


def test_a_session_needs_what_no_other_site_knows(fleet: Served) -> None:
    logged = fleet.guarded.ask("login", method="POST", body={"token": OPERATOR})
    assert logged.status == 204
    cookie = logged.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    session = Client(fleet.guarded.url, {"Cookie": cookie.split(";")[0]})
    me = session.get("me")
    assert (me["user"], me["role"], me["auth"]) == ("bob", "operator", "session")
    ask = {"method": "POST", "body": {"query": "SELECT 1"}}
    assert session.ask("sql", **ask).status == 403  # type: ignore[arg-type]
    right = {"X-CSRF-Token": me["csrf"]}
    assert session.ask("sql", headers=right, **ask).status == 200  # type: ignore[arg-type]
    for more in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"X-CSRF-Token": "0" * 64}):
        assert session.ask("sql", headers={**right, **more}, **ask).status == 403  # type: ignore[arg-type]
    assert session.ask("login", method="DELETE", headers=right).status == 204
    assert session.ask("me").status == 401
    assert fleet.guarded.ask("login", method="POST", body={"token": "wrong"}).status == 401


def test_a_proxy_names_the_user(fleet: Served) -> None:
    for user, role in (("eve", "operator"), ("ann", "viewer")):
        me = Client(fleet.guarded.url, {"X-User": user}).get("me")
        assert (me["user"], me["role"], me["auth"]) == (user, role, "proxy")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "a, b"])
def test_a_name_that_leads_here_by_a_trick_is_refused(fleet: Served, host: str) -> None:
    answer = raw(fleet.plain, f"GET /api/v1/me HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.split(b" ")[1] in (b"400", b"421"), answer[:100]
    assert b"csrf" not in answer


def test_a_long_body_is_refused_told_or_not(fleet: Served) -> None:
    client = fleet.viewer()
    assert client.ask("sql", method="POST", body={"query": "SELECT 1 " + " " * 3_000}).status == 413
    # In chunks nobody says beforehand how long it is; the server may hang up while it is being told.
    told = "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())
    head = f"POST /api/v1/sql HTTP/1.1\r\nHost: {client.place}\r\n{told}Transfer-Encoding: chunked\r\n\r\n"
    assert raw(client, head.encode() + b"1388\r\n" + b"x" * 5_000 + b"\r\n").split(b" ")[1] == b"413"
    assert client.ask("sql", method="POST", body=b"{" * 500).status == 422
    assert client.ask("sql", method="POST", body=b"\xff\xfe").status in (400, 422)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"query": "SELECT 1"}', "application/x-www-form-urlencoded"),
        (b"[1]", "application/json"),
        (b"{", "application/json"),
        (b"", "application/json"),
    ],
)
def test_what_is_no_json_object_is_told_what_to_send(fleet: Served, body: bytes, kind: str) -> None:
    answer = fleet.viewer().ask("sql", method="POST", body=body, headers={"Content-Type": kind})
    assert (answer.status, answer.json["error"]) == (
        422,
        "body: it is no JSON object; send one, with the header Content-Type: application/json",
    )


def test_a_long_address_is_refused(fleet: Served) -> None:
    assert fleet.plain.ask("jobs", {"q": "a" * 9_000}).status == 414
    assert fleet.plain.ask("jobs/" + "a" * 600).status == 414


@pytest.mark.parametrize(
    "begin",
    [b"", b"GET / HT", b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "],
)
def test_a_client_that_never_ends_its_request_is_let_go(fleet: Served, begin: bytes) -> None:
    began = time.monotonic()
    raw(fleet.impatient, begin)
    assert time.monotonic() - began < 60


def test_a_client_that_never_ends_its_body_is_let_go(fleet: Served) -> None:
    head = (
        f"POST /api/v1/sql HTTP/1.1\r\nHost: {fleet.impatient.place}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    for _ in range(20):
        began = time.monotonic()
        answer = raw(fleet.impatient, head.encode())
        assert time.monotonic() - began < 60
        if answer:  # else this process stood still between the connection and its head
            break
    assert answer.split(b" ")[1] == b"408"


def test_names_that_would_be_a_script_stay_text(fleet: Served) -> None:
    path = quote(EVIL_JOB, safe="")
    told = fleet.plain.get(f"jobs/{path}")
    assert told["row"]["job"] == EVIL_JOB
    assert fleet.plain.get(f"jobs/{path}/timeline")["job"] == EVIL_JOB
    team = quote(EVIL_TEAM, safe="")
    assert fleet.plain.get(f"teams/{team}", {"from": FROM, "to": TO})["total"]["jobs"] == 1
    trace = fleet.plain.ask(f"export/jobs/{path}/trace.json")
    assert trace.headers["content-type"] == "application/json"
    assert "set-cookie" not in trace.headers
    assert "<" not in trace.headers["content-disposition"]
    missing = fleet.plain.ask("jobs/%3Cscript%3Ealert(1)%3C%2Fscript%3E-none")
    assert missing.status == 404
    assert missing.headers["content-type"] == "application/json"
    table = fleet.plain.ask("export/jobs.csv", {"team": EVIL_TEAM})
    assert b",'=cmd" in table.body or b"\"'=cmd" in table.body


def test_unknown_methods_and_upgrades_are_refused(fleet: Served) -> None:
    for method in ("PUT", "PATCH", "DELETE", "TRACE", "CONNECT"):
        assert fleet.plain.ask("fleet", method=method).status in (400, 404, 405)
    upgrade = (
        f"GET /api/v1/live HTTP/1.1\r\nHost: {fleet.plain.place}\r\nConnection: Upgrade, close\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    host, port = fleet.plain.place.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(upgrade.encode())
        assert b" 101 " not in connection.recv(1_000)
