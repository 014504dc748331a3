"""Settings that would leave the page open, or cannot be meant, are refused; times are whole hours."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_app.commands._shared import Refused
from ettwatch_app.commands.monitor import monitor
from ettwatch_app.monitor.settings import parse_listen, settings_of
from ettwatch_monitor.api.access import Access, Denied
from ettwatch_monitor.api.settings import MonitorSettings
from ettwatch_monitor.api.tokens import TokensError, parse_tokens
from ettwatch_monitor.queries import DAY_US, HOUR_US, Span, SpanError

TOKEN = "a-token-of-some-length"
NOTHING: dict[str, Any] = {
    "tokens": None,
    "proxy_header": None,
    "proxies": (),
    "operators": (),
    "hosts": (),
    "secure": False,
    "anybody": False,
    "alert_state": None,
    "audit": None,
    "demo": False,
}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "monitor.example"])
def test_an_open_page_for_other_machines_has_to_be_wanted(host: str) -> None:
    with pytest.raises(Refused, match="--tokens"):
        settings_of(host=host, **NOTHING)
    assert not settings_of(host=host, **{**NOTHING, "anybody": True}).guarded


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.9.1"])
def test_on_this_machine_nobody_has_to_say_who_they_are(host: str) -> None:
    assert not settings_of(host=host, **NOTHING).guarded


def test_a_proxy_needs_to_be_known() -> None:
    for wrong in ({"proxy_header": "X-User"}, {"proxies": ("10.0.0.0/8",)}):
        with pytest.raises(Refused, match="--proxy"):
            settings_of(host="::", **{**NOTHING, **wrong})
    with pytest.raises(Refused, match="no address"):
        settings_of(host="::", **{**NOTHING, "proxy_header": "X-User", "proxies": ("somewhere",)})


@pytest.mark.parametrize("text", ["", "127.0.0.1", ":80", "a:99999", "a:-1", "a:b", "[::1:80"])
def test_a_malformed_address_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="--listen"):
        parse_listen(text)
    assert parse_listen("[::1]:80") == ("::1", 80)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no token"),
        ("# nothing\n", "no token"),
        ("viewer ada short", "line 1"),
        (f"admin ada {TOKEN}", "line 1"),
        (f"viewer ada {TOKEN}\nviewer bob {TOKEN}", "line 2"),
        (f"viewer {TOKEN}", "line 1"),
    ],
)
def test_a_wrong_file_of_tokens_is_refused_without_telling_them(text: str, what: str) -> None:
    with pytest.raises(TokensError, match=what) as error:
        parse_tokens(text, "tokens")
    assert TOKEN not in str(error.value)


def test_a_session_ends_by_itself() -> None:
    now = [0.0]
    access = Access(MonitorSettings(tokens=parse_tokens(f"viewer ada {TOKEN}", "t")), lambda: now[0])
    cookie, _ = access.log_in(TOKEN)
    assert access.of({}, cookie, None).user == "ada"
    now[0] = 12 * 3_600
    with pytest.raises(Denied):
        access.of({}, cookie, None)


@given(st.integers(0, 3_999_000_000_000_000), st.integers(1, 3_000 * DAY_US))
def test_a_span_is_the_least_of_whole_hours_around_a_time(start: int, length: int) -> None:
    end = min(start + length, 3_999_000_000_000_001)
    span = Span.around(start, end)
    assert span.start <= start < end <= span.end
    assert start - span.start < HOUR_US
    assert span.end - end < HOUR_US
    days = span.days()
    if days is not None:
        assert span.start <= days[0] < days[1] <= span.end
        assert days[0] - span.start < DAY_US
        assert span.end - days[1] < DAY_US
    assert (span.end - span.start) / span.step <= 530


@pytest.mark.parametrize(("start", "end"), [(5, 5), (9, 3), (0, 3_700 * DAY_US)])
def test_no_time_is_no_span(start: int, end: int) -> None:
    with pytest.raises(SpanError):
        Span.around(start, end)


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    runner = CliRunner()
    for words, said in (
        (["--listen", "nonsense"], "--listen"),
        (["--listen", "127.0.0.1:1", "--port", "2"], "not both"),
        (["--tokens", str(tmp_path / "none")], "cannot read the tokens"),
        (["--data", str(tmp_path / "none"), "--port", "0"], "no data folder"),
    ):
        result = runner.invoke(monitor, words)
        assert result.exit_code == 2, result.output
        assert said in result.output + (str(result.exception) if result.exception else "")
