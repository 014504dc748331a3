"""`ettwatch migrate` against a server, and how the server is reached."""

import contextlib
import http.server
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
from ettwatch_app.commands.migrate import migrate
from ettwatch_clickhouse import connect
from ettwatch_clickhouse.migrate import migrations
from support.clickhouse_server import ServerForTests, clickhouse_server

__all__ = ["clickhouse_server"]

ALL: Final = [m.name for m in migrations()]
SECRET: Final = "geheim-7"


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(migrate, list(arguments), prog_name="ettwatch migrate", env=env or {})
    assert SECRET not in result.output
    return result


@pytest.fixture
def url(clickhouse_server: ServerForTests) -> Iterator[str]:
    found = clickhouse_server.database()
    yield found
    store = connect(found)
    store.command(f"DROP DATABASE {urlsplit(found).path[1:]} SYNC")
    store.close()


def databases(url: str) -> set[str]:
    store = connect(url.rpartition("/")[0] + "/default")
    found = {str(row[0]) for row in store.query("SELECT name FROM system.databases").rows}
    store.close()
    return found


def test_it_makes_the_database_and_may_be_repeated(url: str) -> None:
    first = run("--clickhouse", url)
    assert (first.exit_code, first.output.splitlines()) == (0, [f"applied {name}" for name in ALL])
    again = run(env={"ETTWATCH_CLICKHOUSE": url})
    assert again.exit_code == 0
    assert again.output.startswith(f"nothing to do: all {len(ALL)} migrations are applied at http")


def test_check_says_what_is_missing_and_changes_nothing(url: str) -> None:
    name = urlsplit(url).path[1:]
    before = run("--clickhouse", url, "--check")
    assert before.exit_code == 1
    assert before.output.splitlines() == [f"missing: database {name}", *(f"missing: {each}" for each in ALL)]
    assert name not in databases(url)
    assert run("--clickhouse", url).exit_code == 0
    store = connect(url)
    store.command(f"ALTER TABLE schema_migrations DELETE WHERE number = {len(ALL)} SETTINGS mutations_sync = 1")
    one = run("--clickhouse", url, "--check")
    assert (one.exit_code, one.output.splitlines()) == (1, [f"missing: {ALL[-1]}"])
    assert store.query("SELECT count() FROM schema_migrations").rows == [(len(ALL) - 1,)]
    store.close()
    assert run("--clickhouse", url).output.splitlines() == [f"applied {ALL[-1]}"]
    after = run("--clickhouse", url, "--check")
    assert after.exit_code == 0
    assert after.output.startswith(f"all {len(ALL)} migrations are applied at http")


def test_a_newer_database_is_refused(url: str) -> None:
    run("--clickhouse", url)
    store = connect(url)
    store.command("INSERT INTO schema_migrations SELECT 99, '0099_future', 'x', now64(6)")
    store.close()
    for arguments in ([], ["--check"]):
        refused = run("--clickhouse", url, *arguments)
        assert refused.exit_code == 2
        assert "the database has migration 0099_future, which this ettwatch does not know" in refused.output


def test_what_is_printed_can_be_run_by_hand(url: str) -> None:
    printed = run("--print", env={"ETTWATCH_CLICKHOUSE": url})
    assert printed.exit_code == 0
    name = urlsplit(url).path[1:]
    create, use, *rest = [text.strip() for text in printed.output.split(";\n\n") if text.strip()]
    assert (create, use) == (f"CREATE DATABASE IF NOT EXISTS {name}", f"USE {name}")
    assert name not in databases(url)
    store = connect(url)
    for statement in rest:
        store.command(statement)
    store.close()
    assert run("--clickhouse", url, "--check").exit_code == 0


def test_sql_is_printed_without_any_server() -> None:
    for option, words in {"--print": "CREATE TABLE IF NOT EXISTS events_log", "--print-roles": "GRANT SELECT"}.items():
        printed = run(option)
        assert printed.exit_code == 0
        assert words in printed.output
        assert "ON CLUSTER" not in printed.output
        layout = ("--replicated", "--sharded", "--keeper-path", "/my/path")
        for cluster in (
            run(option, "--cluster", "prod", *layout),
            run(option, *layout, env={"ETTWATCH_CLUSTER": "prod"}),
        ):
            assert cluster.exit_code == 0
            assert "ON CLUSTER 'prod'" in cluster.output
            assert option == "--print-roles" or "'/my/path/{shard}/ettwatch/jobs_log_local'" in cluster.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no ClickHouse is named; give --clickhouse http://user@host:8123/ettwatch, or set ETTWATCH_CLICKHOUSE"),
        (["--clickhouse", f"ftp://me:{SECRET}@host/db"], "'ftp://...@host/db' is no address of a ClickHouse"),
        (["--clickhouse", f"http://me:{SECRET}@host:x/db"], "is no address of a ClickHouse"),
        (["--clickhouse", f"http://me:{SECRET}/@x@host/db"], "'http://...@host/db' is no address of a ClickHouse"),
        (["--clickhouse", "http://host/a-b"], "'a-b' is no name of a database"),
        (["--clickhouse", "http://127.0.0.1:9", "--cluster", "prod"], "say how the tables are laid out over cluster"),
        (["--clickhouse", "http://127.0.0.1:9", "--sharded"], "are layouts of a cluster; name it with --cluster"),
        (["--clickhouse", "http://127.0.0.1:9"], "cannot connect at http://127.0.0.1:9/ettwatch: "),
        (["--clickhouse", "http://127.0.0.1:9", "--check"], "is ClickHouse running and reachable there?"),
        (["--check", "--print"], "give one of --check, --print and --print-roles"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(arguments: list[str], words: str) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert words in refused.output
    assert len(refused.output.splitlines()) == 1


def test_another_layout_is_refused(url: str) -> None:
    run("--clickhouse", url)
    for arguments in (["--check"], []):
        refused = run("--clickhouse", url, "--cluster", "prod", "--replicated", *arguments)
        assert refused.exit_code == 2
    refused = run("--clickhouse", url, "--check", "--cluster", "prod", "--sharded")
    assert "the database is on a single server; the settings say: sharded" in refused.output


class Refusing(http.server.BaseHTTPRequestHandler):
    """Lets nobody in, and keeps the logins."""

    seen: ClassVar[list[str]]

    def do_POST(self) -> None:
        self.seen.append(self.headers["Authorization"])
        text = b"Code: 516. DB::Exception: me: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)\n"
        self.send_response(403)
        self.send_header("X-ClickHouse-Exception-Code", "516")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_wrong_password_is_one_clear_line(tmp_path: Path) -> None:
    class Handler(Refusing):
        seen: ClassVar[list[str]] = []

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        (tmp_path / "password").write_text(SECRET + "\n")
        where = f"http://me@127.0.0.1:{server.server_port}/db"
        refused = run("--clickhouse", where, env={"ETTWATCH_CLICKHOUSE_PASSWORD_FILE": str(tmp_path / "password")})
    finally:
        server.shutdown()
        server.server_close()
    assert refused.exit_code == 2
    assert "check user and password in the address, and the user's rights" in refused.output
    assert len(refused.output.splitlines()) == 1
    assert Handler.seen[0] == "Basic bWU6Z2VoZWltLTc="


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    openssl = shutil.which("openssl")
    assert openssl is not None, "the test needs the program openssl"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.pem")]
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(made, check=True, capture_output=True)
    return folder / "ca.pem", folder / "key.pem"


@contextlib.contextmanager
def encrypted(host: str, port: int, certificate: tuple[Path, Path]) -> Iterator[int]:
    """A port that speaks TLS before another one that does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve(raw: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(raw, server_side=True) as client,
            socket.create_connection((host, port)) as behind,
        ):
            back = threading.Thread(target=pump, args=(behind, client))
            back.start()
            pump(client, behind)
            back.join()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = listener.accept()
                threading.Thread(target=serve, args=(raw,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def test_the_connection_is_encrypted_and_the_certificate_checked(
    clickhouse_server: ServerForTests, url: str, certificate: tuple[Path, Path]
) -> None:
    plain = urlsplit(url)
    assert plain.hostname is not None
    assert plain.port is not None
    login = f"{plain.username}:{plain.password}@" if plain.username else ""
    with encrypted(plain.hostname, plain.port, certificate) as port:
        where = f"https://{login}127.0.0.1:{port}{plain.path}"
        refused = run("--clickhouse", where)
        assert refused.exit_code == 2
        assert "its certificate is not trusted; name the file " in refused.output
        assert "ETTWATCH_CLICKHOUSE_CA" in refused.output
        assert len(refused.output.splitlines()) == 1
        done = run("--clickhouse", where, env={"ETTWATCH_CLICKHOUSE_CA": str(certificate[0])})
        assert (done.exit_code, done.output.splitlines()[-1]) == (0, f"applied {ALL[-1]}")
    wrong = run("--clickhouse", f"https://{login}{plain.hostname}:{plain.port}{plain.path}")
    assert wrong.exit_code == 2
    assert "no encryption is spoken there; check scheme and port" in wrong.output


def test_settings_come_from_the_variables(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(SECRET + "\n")
    (tmp_path / "ca.pem").write_text("certificates")
    env = {
        "ETTWATCH_CLICKHOUSE": "https://me:other@[::1]/data",
        "ETTWATCH_CLICKHOUSE_PASSWORD": "not this one",
        "ETTWATCH_CLICKHOUSE_PASSWORD_FILE": str(tmp_path / "password"),
        "ETTWATCH_CLICKHOUSE_CA": str(tmp_path / "ca.pem"),
    }
    access = ClickHouseAccess.read(env)
    address = access.address
    assert (address.scheme, address.host, address.port, address.database) == ("https", "::1", 8443, "data")
    assert (address.user, address.password, address.ca) == ("me", SECRET, str(tmp_path / "ca.pem"))
    assert access.where == "https://[::1]:8443/data"
    assert SECRET not in repr(access)
    told = ClickHouseAccess.read(env, "https://other-host")
    assert (told.where, told.address.user) == ("https://other-host:8443/ettwatch", "default")
    in_address = ClickHouseAccess.read({"ETTWATCH_CLICKHOUSE": "http://me:a%40b@h"})
    assert in_address.address.password == "a@b"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"ETTWATCH_CLICKHOUSE_PASSWORD_FILE": "/no/file"}, "cannot read /no/file: No such file .*_PASSWORD_FILE"),
        ({"ETTWATCH_CLICKHOUSE_CA": "/no/ca"}, "cannot read /no/ca: No such file .*; correct ETTWATCH_CLICKHOUSE_CA"),
        ({"ETTWATCH_CLICKHOUSE_CA": __file__}, "a file of certificates is given, but http://h:8123 is not encrypted"),
        ({"ETTWATCH_CLICKHOUSE": " "}, "no ClickHouse is named"),
        ({"ETTWATCH_CLICKHOUSE": "http://h/db?user=x"}, "is no address of a ClickHouse"),
    ],
)
def test_wrong_settings_are_one_clear_line(env: dict[str, str], words: str) -> None:
    with pytest.raises(ClickHouseSettingError, match=words):
        ClickHouseAccess.read({"ETTWATCH_CLICKHOUSE": "http://h", **env})
