"""Frames of the rewrite's calls, and the client's side of a connection."""

from __future__ import annotations

import pytest

from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite.exchange import Exchange
from kafkacodec.dialects.rewrite.rpcs import ANSWERS, refusal
from kafkacodec.errors import DecodeError, EncodeError, RemoteProtocolError


def test_the_bytes_of_a_call_and_its_reply():
    call = rewrite.Heartbeat(correlation_id=7, client_id="app-1", session_timeout=1804)
    data = rewrite.encode_request(call)
    # size 27, key 10004, then the body of docs/dialects/rewrite.md
    assert data.hex(" ") == (
        "00 00 00 1b 27 14 00 00 00 00 00 00 00 00 00 07 00 05 61 70 70 2d 31 00 00 00 00 00 00 07 0c"
    )
    assert rewrite.decode_request(data) == (call, False)
    reply = rewrite.HeartbeatResponse(correlation_id=7, controller_generation=3, error_code=1)
    frame = rewrite.encode_reply(reply)
    assert frame.hex(" ") == "00 00 00 14 00 00 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 03 00 01"
    assert rewrite.decode_reply(frame, rewrite.HeartbeatResponse) == reply


@pytest.mark.parametrize("key", rewrite.API_KEYS)
def test_each_call_has_a_key_and_a_refusal(key):
    call = rewrite.API_KEYS[key](correlation_id=3)
    assert rewrite.decode_request(rewrite.encode_request(call)) == (call, False)
    reply = refusal(call, 5)
    assert type(reply) is ANSWERS[type(call)]
    assert reply.to_dict()["correlation_id"] == 3
    assert getattr(reply, "error_code", 5) == 5


@pytest.mark.parametrize("call", [rewrite.ListGroups(), rewrite.CreateGroup(), rewrite.DeleteGroup(),
                                  rewrite.CreateEphemeralGroup()])  # fmt: skip
def test_calls_that_servers_pass_on_have_keys_of_their_own(call):
    assert rewrite.decode_request(rewrite.encode_request(call, passed_on=True)) == (call, True)
    with pytest.raises(EncodeError, match="Heartbeat is not a call"):
        rewrite.encode_request(rewrite.Heartbeat(), passed_on=True)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\2\0\3", "unknown API key 3"),  # Kafka's Metadata
        (b"\0\0\0\1\0", "without a key"),
        (b"\0\0\0\4\x27\x14\0\0", "correlation_id"),
        (rewrite.encode_request(rewrite.ListGroups()) + b"\0", "after"),
    ],
)
def test_what_is_no_call_is_an_error(data, reason):
    with pytest.raises(DecodeError, match=reason):
        rewrite.decode_request(data)


def test_what_cannot_be_sent_is_an_error():
    with pytest.raises(EncodeError, match="HeartbeatResponse is not a call"):
        rewrite.encode_request(rewrite.HeartbeatResponse())
    with pytest.raises(EncodeError, match="exceeds the limit"):
        rewrite.encode_request(rewrite.ListGroups(consumer_groups=["x" * 30_000] * 200))


def test_replies_find_their_calls_in_any_order_and_in_pieces():
    exchange = Exchange()
    sent = [exchange.request(rewrite.ListGroups(correlation_id=5), waiter=i) for i in range(3)]
    ids = [rewrite.decode_request(data).call.to_dict()["correlation_id"] for data in sent]
    assert len(set(ids)) == 3
    stream = b"".join(rewrite.encode_reply(rewrite.ListGroupsResponse(correlation_id=i)) for i in reversed(ids))
    found = [pair for i in range(len(stream)) for pair in exchange.received(stream[i : i + 1])]
    assert [waiter for waiter, _ in found] == [2, 1, 0]
    assert [reply.to_dict()["correlation_id"] for _, reply in found] == [5, 5, 5]
    assert exchange.pending == 0


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (rewrite.encode_reply(rewrite.ListGroupsResponse(correlation_id=9)), "9 is not the id of a call"),
        (b"\xff\xff\xff\xff", "negative"),
        (b"\x7f\xff\xff\xff", "exceeds"),
        (b"\0\0\0\2\0\0", "without a correlation id"),
        (b"\0\0\0\x0b\0\0\0\0\0\0\0\0\0\2\0", "client_id"),
    ],
)
def test_what_is_no_reply_ends_the_connection_after_the_replies_before_it(wrong, reason):
    exchange = Exchange()
    exchange.request(rewrite.ListGroups(), waiter="first")
    exchange.request(rewrite.ListGroups(), waiter="second")
    good = rewrite.encode_reply(rewrite.ListGroupsResponse(correlation_id=1))
    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        exchange.received(good + wrong)
    assert [waiter for waiter, _ in caught.value.events] == ["first"]
    assert exchange.give_up() == ["second"]


def test_a_reply_of_many_reads_is_whole():
    exchange = Exchange()
    exchange.request(rewrite.ListGroups(), waiter=None)
    info = rewrite.ListGroupsResponse.GroupInfo(group_name="g", topics=["t" * 1000] * 1000)
    reply = rewrite.ListGroupsResponse(correlation_id=1, groups_info=[info])
    data = rewrite.encode_reply(reply)
    found = [pair for i in range(0, len(data), 70_000) for pair in exchange.received(data[i : i + 70_000])]
    assert found == [(None, rewrite.ListGroupsResponse(groups_info=[info]))]
