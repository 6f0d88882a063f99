"""`KafkaConnection` without a broker, and the machine in it."""

from __future__ import annotations

import asyncio

import pytest

from kafkacodec import client, errors, messages
from kafkacodec.client import ANY, CONTROLLER, Coordinator, KafkaConnection, aio
from kafkacodec.client.core.calls import Answer
from kafkacodec.client.core.relay import Relay
from tests.patience import SOON

NOBODY = "127.0.0.1:1"


def consumer(servers):
    return aio.Consumer("orders", bootstrap_servers=servers)


def share_consumer(servers):
    return aio.ShareConsumer("orders", bootstrap_servers=servers, group_id="workers")


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
        (reply,) = connection.poll(SOON, (place, messages.ListGroupsRequest()))
        assert isinstance(reply.error, (errors.ConnectionFailed, errors.DeadlineExceeded))
        assert connection.pending == 0
        assert connection.poll(None) == []
    with pytest.raises(errors.ClientClosed):
        connection.poll()


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ("ListGroups", "a request must be a message"),
        (messages.ListGroupsRequest, "a request must be a message"),
        ((1, messages.ListGroupsRequest), "a request must be a message"),
        (("1", messages.ListGroupsRequest()), "a place must be the id of a broker"),
        ((True, messages.ListGroupsRequest()), "a place must be the id of a broker"),
        ((None, messages.ListGroupsRequest()), "a place must be the id of a broker"),
    ],
)
def test_wrong_requests_are_refused_at_the_call(request_, reason):
    with KafkaConnection(NOBODY, request_timeout_ms=300) as connection:
        with pytest.raises(TypeError, match=reason):
            connection.poll(0, messages.ListGroupsRequest(), request_)
        assert connection.pending == 0
        (reply,) = connection.poll(SOON, messages.ListGroupsRequest())
        assert isinstance(reply.error, errors.KafkaCodecError)


def test_a_wrong_time_is_refused():
    with KafkaConnection(NOBODY) as connection:
        with pytest.raises(TypeError, match=r"timeout must be seconds or None, not ListGroupsRequest\(\)"):
            connection.poll(messages.ListGroupsRequest())
        with pytest.raises(ValueError, match="timeout must not be negative"):
            connection.poll(-1, messages.ListGroupsRequest())
        assert connection.pending == 0


def test_coordinators_are_of_known_kinds():
    with pytest.raises(ValueError, match="kind must be 'group', 'transaction' or 'share', not 'groups'"):
        Coordinator("groups", "billing")
    with pytest.raises(TypeError, match="key must be text, not int"):
        Coordinator("group", 5)


@pytest.mark.filterwarnings("ignore:.* was not closed:ResourceWarning")
@pytest.mark.usefixtures("left_open")
@pytest.mark.parametrize("make", [aio.Producer, aio.Admin, aio.KafkaConnection, consumer, share_consumer])
def test_closing_in_another_loop_is_refused(make):
    async def start():
        client = make(NOBODY)
        await client.__aenter__()
        return client

    client = asyncio.run(start())
    for _ in range(2):
        with pytest.raises(errors.ClientClosed, match="belongs to another event loop"):
            asyncio.run(client.close())


@pytest.mark.parametrize("make", [client.Producer, client.Admin, KafkaConnection, aio.Producer, aio.Admin])
def test_repr_says_what_it_is_and_whether_it_is_open(make):
    made = make([NOBODY, "localhost"])
    name = f"{'aio.' if make.__module__.startswith(aio.__name__) else ''}{make.__name__}"
    assert repr(made) == f"<{name}: {NOBODY}, localhost:9092, open>"
    closed = made.close()
    if closed is not None:
        asyncio.run(closed)
    assert repr(made) == f"<{name}: {NOBODY}, localhost:9092, closed>"


def test_repr_of_members_has_the_group():
    with client.Consumer("orders", bootstrap_servers=NOBODY, group_id="billing") as made:
        assert repr(made) == f"<Consumer: {NOBODY}, group 'billing', open>"
    assert repr(share_consumer(NOBODY)) == f"<aio.ShareConsumer: {NOBODY}, group 'workers', open>"
