"""Messages of the library in the words of the command."""

from __future__ import annotations

import pytest

from kafkacodec.cli.advice import in_words


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
