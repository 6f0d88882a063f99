"""Fixtures of pytest with a Kafka broker in the process: `kafka_broker`, `kafka_cluster` and `kafka_topic`.

They are there wherever kafkacodec is installed. The broker starts, and kafkacodec is loaded, when a test uses one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafkacodec.broker import Broker

__all__ = ["kafka_broker", "kafka_cluster", "kafka_topic"]


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    """A `kafkacodec.broker.Broker` for all tests of this process; its data is removed at the end.

    Each worker process of pytest-xdist has its own broker.
    """
    from kafkacodec.broker import serve

    with serve() as broker:
        yield broker


@pytest.fixture
def kafka_cluster() -> Iterator[Broker]:
    """Three Kafka brokers in one, with the ids 1 to 3, for one test, which may move leaders and stop brokers."""
    from kafkacodec.broker import serve

    with serve(brokers=3) as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: Broker, request: pytest.FixtureRequest) -> str:
    """The name of a topic with one partition, created for this test on `kafka_broker`."""
    import re
    import uuid

    name = re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:200] + f"-{uuid.uuid4().hex[:8]}"
    kafka_broker.create_topic(name)
    return name
