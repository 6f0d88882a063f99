"""What a group of Kafka 0.7 commits of the messages that the command prints."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafkacodec.cli.rows.kafka07_brokers import Reading

MESSAGES = [SimpleNamespace(topic="t", broker=0, partition=0, offset=number, value=b"v") for number in range(3)]


class Group:
    def __init__(self) -> None:
        self.polls, self.commits = [MESSAGES], 0

    def poll(self, seconds: float) -> list[Any]:
        return self.polls.pop() if self.polls else []

    def commit(self) -> None:
        self.commits += 1


def reading(limit: int | None) -> Any:
    made = Reading.__new__(Reading)
    made._limit, made._follow = limit, False
    return made


@pytest.mark.parametrize("limit", [None, 3])
def test_messages_that_were_not_written_are_not_committed(limit: int | None) -> None:
    group = Group()
    pages = reading(limit)._of_group(group)
    assert all(next(pages) is not None for _ in MESSAGES)
    pages.close()  # the output is full
    assert group.commits == 0


@pytest.mark.parametrize(("limit", "commits"), [(3, 1), (2, 0)])
def test_a_limit_commits_when_all_that_was_fetched_is_written(limit: int, commits: int) -> None:
    group = Group()
    pages = list(reading(limit)._of_group(group))
    assert len(pages) - pages.count(None) == limit
    assert pages[-1] is None
    assert group.commits == commits
