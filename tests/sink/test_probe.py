"""The probe of worker and sink: figures, life and readiness."""

import http.client
import socket
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter

from ettwatch_faust.probe import Probe, ProbeError, serve
from ettwatch_faust.web import parse_address


class State:
    healthy: str | None = None
    ready: str | None = "waits for the brokers"


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def probe(state: State) -> Iterator[Probe]:
    registry = CollectorRegistry()
    Counter("ettwatch_things", "things seen", registry=registry).inc(3)

    def ready() -> str | None:
        if state.ready == "raise":
            raise RuntimeError("broken")
        return state.ready

    with serve(":0", registry, lambda: state.healthy, ready) as found:
        yield found


def ask(probe: Probe, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(probe.host, probe.port, timeout=60)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_metrics(probe: Probe) -> None:
    status, text = ask(probe, "/metrics")
    assert status == 200
    assert "ettwatch_things_total 3.0" in text
    assert "# HELP ettwatch_things_total things seen" in text
    assert probe.url == f"http://127.0.0.1:{probe.port}"


def test_health_and_readiness_with_their_reasons(probe: Probe, state: State) -> None:
    assert ask(probe, "/healthz") == (200, "ok\n")
    assert ask(probe, "/readyz?verbose=1") == (503, "waits for the brokers\n")
    state.ready, state.healthy = None, "nothing was done for 61 s"
    assert ask(probe, "/healthz") == (503, "nothing was done for 61 s\n")
    assert ask(probe, "/readyz") == (200, "ok\n")
    assert ask(probe, "/readyz", "HEAD") == (200, "")


def test_a_check_that_fails_is_no_ok(probe: Probe, state: State) -> None:
    state.ready = "raise"
    assert ask(probe, "/readyz") == (503, "the check failed: broken\n")


@pytest.mark.parametrize("path", ["/", "/metricsx", "/healthz/"])
def test_there_is_nothing_else(probe: Probe, path: str) -> None:
    assert ask(probe, path) == (404, "there are /metrics, /healthz and /readyz\n")


def test_nothing_can_be_changed(probe: Probe) -> None:
    assert ask(probe, "/metrics", "POST")[0] == 501


def test_a_client_that_says_nothing_holds_up_no_other(probe: Probe) -> None:
    with socket.create_connection((probe.host, probe.port), timeout=60):
        assert ask(probe, "/healthz") == (200, "ok\n")


def test_closed_it_answers_nobody(probe: Probe) -> None:
    probe.close()
    probe.close()
    with pytest.raises(OSError):
        ask(probe, "/healthz")


def test_a_taken_port_is_told_in_one_line(probe: Probe) -> None:
    with pytest.raises(
        ProbeError, match=rf"^cannot listen on 127.0.0.1:{probe.port}: Address already in use; give ano"
    ):
        serve(f"127.0.0.1:{probe.port}", CollectorRegistry(), lambda: None, lambda: None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("off", None),
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
        ("9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:9464", ("::1", 9464)),
    ],
)
def test_addresses(text: str, place: tuple[str, int] | None) -> None:
    assert parse_address(text) == place


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "host:70000", ":-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no address; write HOST:PORT"):
        parse_address(text)
