"""SQL that wants more than to ask, by the view and by every parameter."""

from typing import Final

import pytest

from ettwatch_clickhouse import connect
from support.monitor import FROM, TO, VIEWER, Client, Served

WRITES: Final = (
    "INSERT INTO jobs_log SELECT * FROM jobs_log",
    "DROP TABLE jobs_log",
    "TRUNCATE TABLE jobs_log",
    "ALTER TABLE jobs_log DELETE WHERE 1",
    "OPTIMIZE TABLE jobs_log FINAL",
    "CREATE TABLE x (a Int8) ENGINE = Memory",
    "CREATE TEMPORARY TABLE x (a Int8)",
    "RENAME TABLE jobs_log TO x",
    "SET readonly = 0",
    "SYSTEM FLUSH LOGS",
    "KILL QUERY WHERE 1",
    "GRANT ALL ON *.* TO default",
    "SELECT 1; DROP TABLE jobs_log",
    "SELECT 1 ; ; DROP TABLE jobs_log",
    "/* SELECT */ DROP TABLE jobs_log",
    "-- SELECT\nDROP TABLE jobs_log",
    "EXPLAIN SELECT 1; TRUNCATE TABLE jobs_log",
    "WITH 1 AS x INSERT INTO jobs_log SELECT * FROM jobs_log",
)
REACHES: Final = (
    "SELECT * FROM file('/etc/passwd')",
    "SELECT file('/etc/passwd')",
    "SELECT \"fi\\x6ce\"('/etc/passwd')",
    "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "SELECT * FROM s3('http://127.0.0.1:1/a')",
    "SELECT * FROM executable('id', 'TSV', 'a String')",
    "SELECT * FROM mysql('127.0.0.1:3306', 'a', 'b', 'c', 'd')",
    "SELECT 1 INTO OUTFILE '/tmp/ettwatch-attack'",
    "SELECT * FROM default.`/etc/passwd`",
    "SELECT * FROM system.tables",
    "SELECT * FROM system . users",
    "SELECT * FROM system/**/.settings",
    "SELECT * FROM `system`.processes",
    'SELECT * FROM "sys\\x74em".query_log',
    "SELECT 1 IN (SELECT 1 FROM system.one)",
    "SELECT * FROM INFORMATION_SCHEMA.tables",
    "SELECT * FROM merge('system', '.*')",
    "SELECT catboostEvaluate('/etc/passwd', 1)",
    "DESCRIBE TABLE system.users",
    "SELECT hasColumnInTable('system', 'users', 'name')",
    "SELECT fullHostName()",
    "SELECT getOSKernelVersion()",
    "SELECT logTrace('a line of mine')",
    "SELECT aiGenerate('what is in the jobs?')",
    "SELECT AITranslate('a', 'b')",
)
LIMITS: Final = (
    "SELECT 1 SETTINGS max_execution_time = 0",
    "SELECT * FROM (SELECT 1 SETTINGS max_memory_usage = 0)",
    "SELECT count() FROM numbers(100000000000) WHERE NOT ignore(cityHash64(number))",
    "SELECT groupArray(number) FROM numbers(1000000000)",
    "SELECT sleepEachRow(1) FROM numbers(100)",
    "SELECT repeat('a', 1000000000)",
)
PAYLOADS: Final = (
    "' OR '1'='1",
    "'; DROP TABLE jobs_log; --",
    "\\' OR 1=1 --",
    "{job:String}",
    ") UNION ALL SELECT * FROM system.users --",
    "a\x00b",
    "%27%20OR%201=1",
    "$$x$$ ' \\",
    "ads' AND sleep(3) AND '1'='1",
)
PATHS: Final = (
    ("fleet", ("team", "model", "cluster", "by", "from", "to")),
    ("fleet/series", ("team", "model", "cluster", "by", "step", "from", "to")),
    ("jobs", ("team", "model", "cluster", "status", "q", "sort", "page", "size", "from", "to")),
    ("compare", ("kind", "a", "b", "label", "from")),
    ("alerts", ("status",)),
    ("export/jobs.csv", ("team", "q", "status", "sort")),
    ("export/series.csv", ("team", "by", "step")),
)
EMPTY: Final = 400


def sizes(fleet: Served) -> list[tuple[object, ...]]:
    store = connect(fleet.sql)
    try:
        return [
            *store.query("SELECT name, total_rows FROM system.tables WHERE database = 'ettwatch' ORDER BY name").rows
        ]
    finally:
        store.close()


@pytest.fixture(params=["embedded", "server"])
def asker(request: pytest.FixtureRequest, fleet: Served) -> Client:
    return (fleet.plain if request.param == "embedded" else fleet.viewer()).changing()


@pytest.fixture(params=["embedded", "server"])
def hurried(request: pytest.FixtureRequest, fleet: Served) -> Client:
    """One that gives a query two seconds."""
    of_viewer = {"Authorization": f"Bearer {VIEWER}"}
    return (fleet.hurried_plain if request.param == "embedded" else Client(fleet.hurried.url, of_viewer)).changing()


@pytest.mark.parametrize("query", [*WRITES, *REACHES])
def test_the_sql_view_refuses_what_is_more_than_a_question(fleet: Served, asker: Client, query: str) -> None:
    check_refused(fleet, asker, query)


@pytest.mark.parametrize("query", LIMITS)
def test_the_sql_view_refuses_what_takes_too_much(fleet: Served, hurried: Client, query: str) -> None:
    check_refused(fleet, hurried, query)


def check_refused(fleet: Served, asker: Client, query: str) -> None:
    answer = asker.ask("sql", method="POST", body={"query": query})
    assert answer.status == EMPTY, answer.body[:300]
    assert set(answer.json) == {"error"}
    assert b"/tmp/" not in answer.body
    assert str(fleet.folder).encode() not in answer.body


def test_what_was_refused_changed_nothing(fleet: Served) -> None:
    before = sizes(fleet)
    client = fleet.plain.changing()
    for query in WRITES:
        client.ask("sql", method="POST", body={"query": query})
    assert sizes(fleet) == before


def test_the_sql_view_answers_questions(asker: Client) -> None:
    answer = asker.ask(
        "sql",
        method="POST",
        body={
            "query": "SELECT toUInt64(9007199254740993) AS big, toInt64(-5) AS small, toNullable(NULL) AS none, "
            "fromUnixTimestamp64Micro(1500000, 'UTC') AS at, [1, 2] AS list, 'a;b' AS text, 0 / 0 AS odd;"
        },
    )
    assert answer.status == 200, answer.body
    told = answer.json
    assert [column["name"] for column in told["columns"]] == ["big", "small", "none", "at", "list", "text", "odd"]
    assert told["rows"] == [["9007199254740993", -5, None, "1970-01-01T00:00:01.500000Z", [1, 2], "a;b", None]]


def test_an_answer_is_cut_at_the_limit(fleet: Served) -> None:
    told = fleet.viewer().ask("sql", method="POST", body={"query": "SELECT number FROM numbers(100000)"}).json
    assert told["truncated"]
    assert told["rows"] == [[n] for n in range(100)]
    whole = fleet.viewer().ask("sql", method="POST", body={"query": "SELECT number FROM numbers(100)"}).json
    assert not whole["truncated"]
    assert len(whole["rows"]) == 100


@pytest.mark.parametrize(("path", "names"), PATHS)
def test_no_parameter_becomes_sql(fleet: Served, path: str, names: tuple[str, ...]) -> None:
    base = {"kind": "team", "a": "ads", "b": "feed"} if path == "compare" else {}
    usual = {"from": FROM, "to": TO} if "alerts" not in path else {}
    before = sizes(fleet)
    for name in names:
        for payload in PAYLOADS:
            answer = fleet.plain.ask(path, {**usual, **base, name: payload})
            assert answer.status in (200, 404, 422), (name, payload, answer.status, answer.body[:200])
            if answer.status == 200 and path == "jobs" and name in ("team", "model", "cluster", "q"):
                assert answer.json["total"] == 0, (name, payload)
            if answer.status == 200 and path == "fleet" and name in ("team", "model", "cluster"):
                assert answer.json["total"]["jobs"] == 0, (name, payload)
    assert sizes(fleet) == before


@pytest.mark.parametrize("path", ["jobs/{}", "jobs/{}/timeline", "teams/{}", "owners/{}", "export/jobs/{}/trace.json"])
def test_no_name_in_a_path_becomes_sql(fleet: Served, path: str) -> None:
    for payload in ("%27%20OR%20%271%27=%271", "%27;DROP%20TABLE%20jobs_log;--", "%5C%27", "%7Bjob:String%7D", "a%00b"):
        answer = fleet.plain.ask(path.format(payload))
        assert answer.status == 404, (path, payload, answer.status, answer.body[:200])
