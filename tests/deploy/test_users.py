"""The users of ClickHouse: the scripts run, no password leaves its file, and the engine reads every statement."""

import hashlib
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from ettwatch_app.commands.migrate import migrate
from ettwatch_clickhouse import EmbeddedStore, open_embedded

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CLICKHOUSE = DEPLOY / "clickhouse"


def make_secrets(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["sh", DEPLOY / "secrets.sh", folder], check=True, capture_output=True, text=True)


def statements_for(secrets: Path) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": "/usr/bin:/bin", "SECRETS": str(secrets), "SQL": str(CLICKHOUSE), "CLIENT": "cat"}
    return subprocess.run(["sh", CLICKHOUSE / "users.sh"], env=env, capture_output=True, text=True)


def plain(sql: str) -> list[str]:
    """The statements, without comments."""
    text = re.sub(r"^\s*--.*$", "", sql, flags=re.MULTILINE)
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def test_the_script_makes_every_secret_and_keeps_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    made = make_secrets(folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *(f"clickhouse-{user}" for user in ("admin", "migrate", "sink", "reader")),
        "grafana-admin",
        "alert-page",
        "alert-ticket",
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    passwords = [(folder / name).read_text() for name in sorted(names) if not name.startswith("alert")]
    assert len(set(passwords)) == len(passwords)
    assert all(re.fullmatch(r"[\w-]{32}", password) for password in passwords)
    assert not any(password in made.stdout + made.stderr for password in passwords)
    before = {name: (folder / name).read_bytes() for name in names}
    (folder / "clickhouse-sink").unlink()
    assert make_secrets(folder).stdout == f"made {folder}/clickhouse-sink\n"
    after = {name: (folder / name).read_bytes() for name in names}
    assert {name for name in names if before[name] != after[name]} == {"clickhouse-sink"}


def test_a_statement_has_the_digest_and_never_the_password(tmp_path: Path) -> None:
    make_secrets(tmp_path)
    (tmp_path / "clickhouse-sink").chmod(0o644)
    (tmp_path / "clickhouse-sink").write_text("a'b\"c\\d $e/&\n")
    done = statements_for(tmp_path)
    assert done.returncode == 0, done.stderr
    assert hashlib.sha256(b"a'b\"c\\d $e/&").hexdigest() in done.stdout
    assert not re.search(r"@[A-Z]+@", done.stdout.replace("@NAME@", ""))
    for name in ("migrate", "reader", "admin"):
        assert (tmp_path / f"clickhouse-{name}").read_text() not in done.stdout + done.stderr


def test_a_password_that_is_missing_is_named(tmp_path: Path) -> None:
    make_secrets(tmp_path)
    (tmp_path / "clickhouse-reader").unlink()
    done = statements_for(tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"users.sh: {tmp_path}/clickhouse-reader is missing")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    opened = open_embedded(tmp_path_factory.mktemp("engine") / "clickhouse")
    try:
        yield opened
    finally:
        opened.close()


def test_the_engine_reads_every_statement(engine: EmbeddedStore, tmp_path: Path) -> None:
    make_secrets(tmp_path)
    statements = plain(statements_for(tmp_path).stdout)
    assert len(statements) > 20
    for statement in statements:
        assert engine.query("SELECT formatQuery({sql:String})", {"sql": statement}).rows, statement


def test_the_engine_would_see_a_fault(engine: EmbeddedStore) -> None:
    with pytest.raises(Exception, match="Syntax error"):
        engine.query("SELECT formatQuery('GRANT SELEKT ON ettwatch.* TO sink')")


def test_the_roles_are_those_that_the_command_prints() -> None:
    printed = CliRunner().invoke(migrate, ["--print-roles"])
    assert printed.exit_code == 0, printed.output
    assert plain((CLICKHOUSE / "roles.sql").read_text(encoding="utf-8")) == plain(printed.output)


def test_each_user_has_one_role_and_nothing_else() -> None:
    statements = plain((CLICKHOUSE / "users.sql").read_text(encoding="utf-8"))
    assert [statement for statement in statements if statement.startswith("GRANT")] == [
        "GRANT ettwatch_migrator TO migrate",
        "GRANT ettwatch_writer TO sink",
        "GRANT ettwatch_reader TO reader",
    ]


@pytest.mark.parametrize("name", ["server.xml", "admin.xml", "tls.xml"])
def test_a_settings_file_is_well_formed(name: str) -> None:
    assert ElementTree.parse(CLICKHOUSE / name).getroot().tag == "clickhouse"


def test_the_administrator_logs_in_on_the_machine_of_the_server_only() -> None:
    networks = ElementTree.parse(CLICKHOUSE / "admin.xml").find("./users/admin/networks")
    assert networks is not None
    assert networks.get("replace") == "replace"
    assert [each.text for each in networks] == ["127.0.0.1", "::1"]
