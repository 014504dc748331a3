import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_clickhouse.http.fence import Fence, Refusal
from ettwatch_clickhouse.http.lexer import tokens
from ettwatch_clickhouse.http.statement import parse

FENCE = Fence(["file", "url", "s3", "remote", "numbers", "executable", "view", "values", "eval", "python"])


def texts(sql: str) -> list[str]:
    return [token.text for token in tokens(sql.encode())]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT 1+a", ["SELECT", "1", "+", "a"]),
        ("a -- b\nc", ["a", "c"]),
        ("a /* b ' */ c", ["a", "c"]),
        ("a # b\nc #! d\n", ["a", "c"]),
        ("'it''s' 'a\\'b'", ["'it''s'", "'a\\'b'"]),
        ('"a""b" `c\\`d`', ['a""b', "c\\`d"]),
        ("$x$ a ' $x$ b", ["$x$ a ' $x$", "b"]),
        ("“a'b” c", ["“a'b”"[1:-1], "c"]),
        ("'open", ["'", "open"]),
        ("größe", ["größe"]),
    ],
)
def test_tokens(sql: str, found: list[str]) -> None:
    assert [text.strip("“”") for text in texts(sql)] == found


def test_brackets_are_counted() -> None:
    assert [(t.text, t.depth) for t in tokens(b"a(b[c])d")] == [
        *[("a", 0), ("(", 1), ("b", 1), ("[", 2), ("c", 2), ("]", 1), (")", 0), ("d", 0)]
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_cut_into_tokens(sql: bytes) -> None:
    found = list(tokens(sql))
    assert [t.end for t in found] == sorted(t.end for t in found)
    assert all(t.end <= len(sql) for t in found)
    parse(sql)


@pytest.mark.parametrize(
    ("sql", "verb", "form", "several"),
    [
        ("select 1", "SELECT", None, False),
        ("SELECT 1 FORMAT JSON", "SELECT", "JSON", False),
        ("SELECT 1 format JSON;", "SELECT", "JSON", False),
        ("SELECT 1 FORMAT CSV SETTINGS max_threads = 1", "SELECT", "CSV", False),
        ("SELECT * FROM (SELECT 1 FORMAT CSV)", "SELECT", None, False),
        ("SELECT 'FORMAT CSV'", "SELECT", None, False),
        ("SELECT 1; SELECT 2", "SELECT", None, True),
        ("SELECT 1;; -- nothing", "SELECT", None, True),
        ("(SELECT 1)", "(", None, False),
        ("-- x\nWITH a AS (SELECT 1) SELECT * FROM a", "WITH", None, False),
        ("INSERT INTO t SELECT 1", "INSERT", None, False),
        ("", "", None, False),
    ],
)
def test_statements(sql: str, verb: str, form: str | None, several: bool) -> None:
    found = parse(sql.encode())
    assert (found.verb, found.form, found.several) == (verb, form, several)
    assert found.data is None
    assert found.sql == sql.encode()


@pytest.mark.parametrize(
    ("sql", "head", "form", "data"),
    [
        ("INSERT INTO t FORMAT CSV\n1,2\n", "INSERT INTO t", "CSV", "1,2\n"),
        ("INSERT INTO t FORMAT CSV 1,2", "INSERT INTO t", "CSV", "1,2"),
        (
            "insert into t (a, format) settings x = 1 format TSV\r\n1",
            "insert into t (a, format) settings x = 1",
            "TSV",
            "1",
        ),
        ("INSERT INTO t FORMAT Native\n\n\x00", "INSERT INTO t", "Native", "\n\x00"),
        ("INSERT INTO `select` FORMAT CSV\nSELECT", "INSERT INTO `select`", "CSV", "SELECT"),
        ("INSERT INTO t FORMAT CSV", "INSERT INTO t", "CSV", ""),
    ],
)
def test_inserted_data_are_told_from_the_statement(sql: str, head: str, form: str, data: str) -> None:
    found = parse(sql.encode())
    assert found.data is not None
    assert (found.sql.decode().strip(), found.form, sql.encode()[found.data :].decode()) == (head, form, data)


def test_values_are_not_cut_into_tokens() -> None:
    found = parse(b"INSERT INTO t (a) VALUES ('x;y'), ('unfinished")
    assert (found.verb, found.form, found.several) == ("INSERT", None, False)
    assert found.values is not None
    assert [word.text for word in found.words][-1] == "VALUES"


REFUSED = [
    "SELECT file('/etc/passwd')",
    "SELECT * FROM FILE ( '/x' )",
    "SELECT * FROM `file`('/x')",
    "SELECT * FROM \"f\\x69le\"('/x')",
    "SELECT * FROM file /* hm */ ('/x')",
    "SELECT “a'b”, file('/etc/passwd'), 'x'",
    "INSERT INTO FUNCTION file('/x') SELECT 1",
    "INSERT INTO FUNCTION file('/x', 'CSV', 'a Int8') FORMAT CSV\n1",
    "INSERT INTO t VALUES (file('/etc/passwd'))",
    "INSERT INTO t FROM INFILE '/x' FORMAT CSV",
    "SELECT 1 INTO OUTFILE '/x'",
    "SELECT 1 INTO /* */ OUTFILE '/x'",
    "CREATE TABLE t (a Int8) ENGINE = File(CSV, '/x')",
    "CREATE TABLE t (a Int8) ENGINE URL('http://x')",
    "CREATE TABLE t AS s3('http://x')",
    "CREATE DATABASE d ENGINE = Filesystem('/')",
    "CREATE DICTIONARY d (a Int8) PRIMARY KEY a SOURCE(FILE(path '/x')) LAYOUT(FLAT()) LIFETIME(1)",
    "CREATE OR REPLACE DICTIONARY d (a Int8) PRIMARY KEY a SOURCE(EXECUTABLE(command 'x'))",
    "SELECT * FROM default.`/etc/passwd`",
    'SELECT * FROM "default"."x"',
    "USE default",
    "BACKUP TABLE t TO File('/x')",
    "RESTORE TABLE t FROM Disk('a', 'b')",
    "ATTACH TABLE t FROM '/x' (a Int8) ENGINE = Log",
    "SYSTEM SHUTDOWN",
    "SYSTEM RELOAD CONFIG",
    "SELECT 1 FORMAT Template SETTINGS format_template_row = '/x'",
    "SELECT * FROM eval('SELECT 1')",
    "SELECT 1; DROP TABLE t",
    "",
    " -- nothing",
]

ALLOWED = [
    "SELECT * FROM numbers(3)",
    "SELECT file FROM t",
    "SELECT 'file(1)', \"file\" FROM t",
    "SELECT 1 -- file('/x')",
    "CREATE TABLE t (a Int8 DEFAULT 1, default Int8) ENGINE = ReplacingMergeTree ORDER BY a",
    "CREATE TABLE t (a Int8) ENGINE MergeTree ORDER BY a",
    "SELECT engine FROM system.tables WHERE engine = 'File'",
    "INSERT INTO t VALUES ('file(1)')",
    "INSERT INTO t FORMAT CSV\nfile('/x')",
    "SYSTEM FLUSH LOGS",
    "EXCHANGE TABLES a AND b",
    "WITH x AS (SELECT 1) SELECT * FROM x, view(SELECT 2)",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_reaches_out_is_refused(sql: str) -> None:
    with pytest.raises(Refusal):
        FENCE.check(parse(sql.encode()), {})


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_stays_inside_is_allowed(sql: str) -> None:
    FENCE.check(parse(sql.encode()), {"database": "ettwatch", "param_a": "default"})


def test_parameters_cannot_reach_out_either() -> None:
    statement = parse(b"SELECT * FROM {db:Identifier}.{t:Identifier}")
    with pytest.raises(Refusal, match="the database default"):
        FENCE.check(statement, {"param_db": "default", "param_t": "x"})
    FENCE.check(statement, {"param_db": "ettwatch", "param_t": "jobs"})
    with pytest.raises(Refusal, match="format_schema"):
        FENCE.check(parse(b"SELECT 1"), {"format_schema": "/x"})
