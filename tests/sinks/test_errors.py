import errno
from typing import Any

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError

from ettwatch_clickhouse import StoreError, StoreUnavailable, connect
from ettwatch_clickhouse.client import ClientStore
from ettwatch_clickhouse.errors import reason

NESTED = (
    "Received ClickHouse exception, code: 243, server response: Code: 243. DB::Exception: Code: 243. DB::Exception: "
    "Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE) (version 26.9.2.1 (official build)) "
    "(for url http://user:secret@h:8123)"
)


class Broken:
    """A client of which every call fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def command(self, sql: str) -> None:
        raise self.error


def told(error: Exception) -> StoreError:
    broken: Any = Broken(error)
    with pytest.raises(StoreError) as caught:
        ClientStore(broken, "/data").command("ALTER TABLE t DROP COLUMN x")
    return caught.value


def test_a_full_disk_is_told_as_such() -> None:
    for error in (
        DatabaseError(NESTED, code=243),
        DatabaseError(
            "Code: 75. DB::ErrnoException: Cannot write to file: , errno: 28, strerror: No space left on device"
        ),
        OSError(errno.ENOSPC, "No space left on device", "/tmp/x"),
        OSError(errno.EDQUOT, "Disk quota exceeded", "/tmp/x"),
    ):
        found = told(error)
        assert type(found) is StoreError
        assert "the disk is full: free some space there" in str(found)
        assert "\n" not in str(found)


def test_a_message_is_short_and_has_no_secrets() -> None:
    found = told(DatabaseError(NESTED, code=243))
    assert str(found) == (
        "cannot run ALTER TABLE t DROP at /data: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE); "
        "the disk is full: free some space there"
    )
    assert found.code == 243


@pytest.mark.parametrize("code", [159, 202, 209, 210, 241, 242, 252, 319, 999])
def test_what_passes_by_itself_may_be_tried_again(code: int) -> None:
    assert type(told(DatabaseError(f"Code: {code}. DB::Exception: busy", code=code))) is StoreUnavailable


def test_a_lost_connection_may_be_tried_again() -> None:
    found = told(OperationalError("Error HTTPConnectionPool(host='h', port=1): Max retries exceeded"))
    assert type(found) is StoreUnavailable
    assert "is ClickHouse running and reachable there?" in str(found)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (516, "check user and password"),
        (497, "check user and password"),
        (164, "takes no changes"),
        (60, "migrations"),
        (62, ""),
    ],
)
def test_what_does_not_pass_is_told_with_what_to_do(code: int, words: str) -> None:
    found = told(DatabaseError(f"Code: {code}. DB::Exception: because. (NAME)", code=code))
    assert type(found) is StoreError
    assert words in str(found)
    assert "because. (NAME)" in str(found)


def test_reasons_are_brought_to_one_line() -> None:
    assert reason("Code: 1. DB::Exception: a\n  b. (X), Stack trace (when copying):\n0. x") == "a b. (X)"
    assert reason("") == "no reason was given"
    assert len(reason("x" * 9999)) == 500


@pytest.mark.parametrize(
    "url", ["", "nonsense", "http://", "ftp://h/db", "http://h:notaport/db", "http://u:secret@h:8123/a/b", "//h:1"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(StoreError, match="is no address of a ClickHouse; give one such as") as caught:
        connect(url)
    assert "secret" not in str(caught.value)


def test_nobody_there() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        connect("http://user:secret@127.0.0.1:1", connect_timeout_s=1)
    assert str(caught.value) == (
        "cannot connect at http://127.0.0.1:1/ettwatch: Failed to establish a new connection: [Errno 111] Connection "
        "refused; is ClickHouse running and reachable there?"
    )
