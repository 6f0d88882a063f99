"""`KafkaConnection` without a broker, and the machine in it."""

from __future__ import annotations

import pytest

from kafkacodec import errors, messages
from kafkacodec.client import ANY, CONTROLLER, KafkaConnection
from kafkacodec.client.core.calls import Answer
from kafkacodec.client.core.relay import Relay

NOBODY = "127.0.0.1:1"


def test_replies_come_in_the_order_of_the_answers():
    relay = Relay()
    first, second = messages.MetadataRequest(), messages.ListGroupsRequest()
    relay.add(1, first)
    relay.add(ANY, second)
    one, two = relay.poll(0)
    assert relay.poll(1) == []
    broke = errors.ConnectionFailed("broke")
    relay.failed(two, broke, 2)
    relay.answered(one, Answer("response", 9, 1), 3)
    assert relay.pending == 2  # a caller that waits for none to be pending gets both
    assert relay.take() == [
        (second, ANY, None, broke, None, None),
        (first, 1, "response", None, 1, 9),
    ]
    assert relay.pending == 0
    assert relay.take() == []


@pytest.mark.parametrize("place", [ANY, CONTROLLER, 5])
def test_nobody_there_is_a_reply(place):
    with KafkaConnection(NOBODY, request_timeout_ms=300) as connection:
        (reply,) = connection.poll(10, (place, messages.ListGroupsRequest()))
        assert isinstance(reply.error, (errors.ConnectionFailed, errors.DeadlineExceeded))
        assert connection.pending == 0
        assert connection.poll(None) == []
    with pytest.raises(errors.ClientClosed):
        connection.poll()
