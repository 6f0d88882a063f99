"""Regular expressions for topic names: the same meaning as in Java, matched in linear time."""

import re
import time

import pytest

from kafkacodec.patterns import PatternError, whole_matcher

NAMES = ("orders", "orders-eu", "__consumer_offsets", "_schemas", "a.b", "a-b", "Orders", "ORDERS-1", "x", "äöü", "a[b")


@pytest.mark.parametrize(
    "pattern",
    [
        "orders",
        "orders.*",
        "orders|x",
        "^orders(-eu)?$",
        "[a-z]+",
        "[^_].*",
        r"a\.b",
        r"\w+",
        "(?i)orders.*",
        "(?!__).*",
        "^(?!__|_schemas$).+",
        "(?=o)(?!orders$).*",
        r"(?![_\]a)]).*",
        "(?!(a|o)).*",
        "",
    ],
)
def test_common_expressions_mean_what_they_do_elsewhere(pattern):
    matches = whole_matcher(pattern)
    assert [name for name in NAMES if matches(name)] == [
        name for name in NAMES if re.fullmatch(pattern, name, re.ASCII)
    ]


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){20}", "a?" * 40 + "a" * 40, "(?!(a+)+b).*c"])
def test_no_expression_takes_long(pattern):
    matches = whole_matcher(pattern)
    started = time.process_time()
    matches("a" * 248 + "!")
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*", r"(a)\1", "a(?=b).*", "(?<=a)b", "a++b", "(?!a", "a{1000000}", "\ud800"]
)
def test_others_are_refused(pattern):
    with pytest.raises(PatternError, match="RE2"):
        whole_matcher(pattern)


def test_names_need_not_be_text():
    assert not whole_matcher(".*")("\ud800")
