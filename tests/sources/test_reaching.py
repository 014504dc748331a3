"""A server that cannot be reached is told in one line that says what to do."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import urllib3

from ettwatch_sources.reaching import unreached


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A server that says so much to whoever comes, and goes; None: it waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                if answer is None:
                    kept.append(connection)
                    continue
                connection.recv(4096)
                connection.sendall(answer)
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()


def asked(address: str, seconds: float = 60) -> str:
    with urllib3.PoolManager(retries=False) as pool, pytest.raises(urllib3.exceptions.HTTPError) as caught:
        pool.request("GET", f"{address}/x", timeout=seconds)
    return unreached(caught.value, address, "dashboard", "name it with --address")


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("http://127.0.0.1:1", "nothing listens at http://127.0.0.1:1; is the dashboard up, the port right? "),
        ("https://127.0.0.1:1", "nothing listens at https://127.0.0.1:1; is the dashboard up, the port right? "),
        ("http://no-such-host.invalid", "the host in http://no-such-host.invalid is not known ("),
        ("http://[bad", "'http://[bad' is no address; "),
        ("http://127.0.0.1:99999", "'http://127.0.0.1:99999' is no address; "),
    ],
)
def test_nobody_there(address: str, line: str) -> None:
    told = asked(address)
    assert told.startswith(line)
    assert told.endswith("name it with --address")
    assert "HTTPConnection" not in told


@pytest.mark.parametrize(
    ("answer", "scheme", "words"),
    [
        (None, "http", "takes connections and does not answer; is it the dashboard?"),
        (b"", "http", "ended the connection without an answer; is it the dashboard?"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "https", "no TLS is spoken there; does its address begin with http://?"),
    ],
)
def test_somebody_else_there(answer: bytes | None, scheme: str, words: str) -> None:
    with listening(answer) as port:
        told = asked(f"{scheme}://127.0.0.1:{port}", 0.5 if answer is None else 60)
    assert words in told
    assert told.endswith("name it with --address")
    assert "\n" not in told
