"""The embedded broker's answers to scripts of requests beside those of Apache Kafka (see `tests/differential`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.brokers import of_this_broker
from tests.differential.checking import check


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "release", "least"),
    [
        ("scripts", "4", 3734),
        ("scripts", "3.9", 2666),
        ("lifetimes", "4", 385),
        ("lifetimes", "3.9", 311),
        ("given", "4", 37),
        ("given-hours", "4", 37),
        ("given-finer", "4", 37),
        ("given-finer", "3.9", 37),
    ],
)
def test_answers_of_kafka(folder: str, release: str, least: int, tmp_path: Path) -> None:
    result = check(of_this_broker(folder, tmp_path, release), release)
    assert not result.lines, "\n".join(result.lines)
    assert result.equal >= least
