"""Messages of the library in the words of the command."""

from __future__ import annotations

import pytest

from kafkacodec.cli.advice import advised, in_words
from kafkacodec.errors import CrcMismatch, DecodeError


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "ordres: UNKNOWN_TOPIC_OR_PARTITION; did you mean 'orders'?",
            "ordres: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION); did you mean 'orders'?",
        ),
        (
            "2 of 2 groups were not deleted: a: GROUP_ID_NOT_FOUND; b: NON_EMPTY_GROUP",
            "2 of 2 groups were not deleted: a: group id not found (GROUP_ID_NOT_FOUND); "
            "b: non empty group (NON_EMPTY_GROUP)",
        ),
        ("REQUEST_TIMED_OUT", "request timed out (REQUEST_TIMED_OUT)"),
        ("topic: MY_TOPIC; is it NOT_CONTROLLER here?", "topic: MY_TOPIC; is it NOT_CONTROLLER here?"),
    ],
)
def test_error_codes_are_words(message: str, shown: str) -> None:
    assert in_words(message) == shown


def test_advice_about_options_of_spark_is_that_of_the_command() -> None:
    skipped = "a.log: wrong (byte 5); --on-error skip reads what follows"
    error = CrcMismatch("wrong", position=5, path="a.log").advised("mode=PERMISSIVE skips and logs damage")
    assert advised(error, {"--on-error"}) == advised(str(error), {"--on-error"}) == skipped
    assert advised(error) == "a.log: wrong (byte 5)"
    value = DecodeError("not JSON", path="t-0: offset 1: value").advised("on_error='null' reads such values as null")
    assert advised(value, {"--on-value-error"}) == (
        "t-0: offset 1: value: not JSON; --on-value-error null makes such values null"
    )
