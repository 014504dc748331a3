"""Matchers of labels, in Alertmanager's syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ettwatch_monitor.alerts.deliver import Matcher, MatcherError, parse_matchers
from ettwatch_monitor.alerts.deliver.matchers import all_match

LABELS = {"team": "ads", "cluster": "eu-1", "odd": 'a"b,c}'}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ('team="ads"', True),
        ("team=ads", True),
        (" team = ads ", True),
        ("team!=ads", False),
        ("team=~a.*", True),
        ("team=~d", False),  # the whole value has to match
        ('team=~"ads|video"', True),
        ("team!~ads|video", False),
        ("model=", True),  # what is missing is empty
        ("model!=x", True),
        ("model=~.+", False),
        ('team="ads", cluster=~"eu-.*"', True),
        ('{team="ads",cluster="us"}', False),
        ("{team=ads,}", True),
        (r'odd="a\"b,c}"', True),
        ('odd=~"a.b,c[}]"', True),
    ],
)
def test_what_matches(text: str, matches: bool) -> None:
    assert all_match(parse_matchers(text), LABELS) is matches


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no matcher"),
        ("{}", "no matcher"),
        ("team", "is no matcher; write a label"),
        ("te am=x", "is no matcher"),
        ('team="ads', "a quote or a comma too many"),
        ("team=a,,cluster=b", "a quote or a comma too many"),
        (",team=a", "a quote or a comma too many"),
        ('team="a" b', "text after the quotes"),
        ('team=a"b"', "quotes inside"),
        ("team=~[", "no regular expression"),
        ("9=x", "is no matcher"),
    ],
)
def test_what_is_wrong_is_told(text: str, words: str) -> None:
    with pytest.raises(MatcherError, match=words):
        parse_matchers(text)


@given(
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,9}", fullmatch=True),
    st.sampled_from(("=", "!=")),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_a_matcher_that_is_written_and_read_is_the_same(name: str, op: str, value: str) -> None:
    matcher = Matcher(name, op, value)
    assert parse_matchers(str(matcher)) == (matcher,)
    assert parse_matchers(f"{{{matcher}, {matcher}}}") == (matcher, matcher)
