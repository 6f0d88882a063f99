"""When a consumer looks at its partitions again: not while an answer is under way that makes it look anyway."""

from __future__ import annotations

import kafkacodec as kc
from tests.reference.model_broker import ModelCluster
from tests.reference.model_consumer import ModelConsumer


def reading(**options):
    """A consumer of a partition whose answers have three of a hundred records, with room for two answers."""
    model = ModelCluster(1, {"t": 1})
    for _ in range(100):
        assert model.logs["t", 0].append(kc.encode([(None, b"x" * 10_000)]), 0).code == 0
    sizes = {"max_partition_fetch_bytes": 30_000, "fetch_max_bytes": 30_000, "prefetch_bytes": 70_000}
    made = ModelConsumer(model, auto_offset_reset="earliest", **sizes, **options)
    made.assign(("t", 0))
    return made


def test_what_is_read_while_an_answer_comes_needs_no_poll():
    read = reading()
    read.wait()
    fetcher = read.fetcher
    assert len(fetcher.ready) == 1
    assert not fetcher.held_back
    assert fetcher.done([fetcher.ready.popleft()]) is False
    read.network.run(5000, until=lambda: len(fetcher.ready) == 2)
    assert fetcher.held_back  # without room, nothing is under way
    assert fetcher.done([fetcher.ready.popleft()]) is True


def test_a_partition_that_the_answer_does_not_have_needs_one():
    read = reading()
    read.wait()
    read.state().draining = True  # it is fetched again when this is read, from whichever broker
    read.network.poll()
    assert read.fetcher.done([read.fetcher.ready.popleft()]) is True


def test_every_record_is_read_with_the_polls_that_are_left():
    read = reading()
    assert read.read_all(30_000) == [(0, offset) for offset in range(100)]
    assert read.fetcher.kept_bytes == 0
