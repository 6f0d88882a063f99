"""A broker's connection pauses while as many requests wait for responses as it takes."""

import pytest
from hypothesis import given, strategies as st

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.dialects import kafka07
from kafkacodec.protocol import Connection, encode_request


def heartbeats(count):
    """Requests with the correlation ids 0, 1, …"""
    return [encode_request(messages.HeartbeatRequest(group_id=f"g{i}"), 4, i, "c") for i in range(count)]


def test_requests_beyond_the_limit_wait_as_bytes():
    broker = Connection("broker", max_pending=2)
    first = broker.receive(b"".join(heartbeats(5)))
    assert [event.correlation_id for event in first] == [0, 1]
    assert (broker.paused, broker.pending) == (True, 2)
    assert "paused" in repr(broker)
    assert broker.receive(b"") == []
    broker.send_response(0, messages.HeartbeatResponse())
    assert not broker.paused
    (third,) = broker.receive(b"")
    assert (third.correlation_id, third.message.group_id) == (2, "g2")
    assert broker.paused


def test_an_early_response_does_not_end_the_pause():
    broker = Connection("broker", max_pending=2)
    broker.receive(b"".join(heartbeats(3)))
    assert broker.send_response(1, messages.HeartbeatResponse()) == b""
    assert broker.paused
    assert broker.receive(b"") == []
    assert len(broker.send_response(0, messages.HeartbeatResponse())) == 2 * 16
    assert [event.correlation_id for event in broker.receive(b"")] == [2]


def test_what_a_paused_connection_takes_is_bounded():
    one, two, three = heartbeats(3)
    broker = Connection("broker", max_frame_size=100, max_pending=1)
    assert broker.room == 104
    broker.receive(one + two)
    assert broker.room == 104 - len(two)
    with pytest.raises(kc.LocalProtocolError, match=r"105 bytes received while paused, with room for 7\d: send resp"):
        broker.receive(bytes(105))
    assert broker.receive(three) == []
    broker.send_response(0, messages.HeartbeatResponse())
    assert [event.correlation_id for event in broker.receive(b"")] == [1]
    broker.send_response(1, messages.HeartbeatResponse())
    assert [event.correlation_id for event in broker.receive(b"")] == [2]


def test_a_read_may_pause_with_more_than_there_is_room_for():
    broker = Connection("broker", max_frame_size=100, max_pending=1)
    broker.receive(b"".join(heartbeats(50)))
    assert broker.room == 0
    with pytest.raises(kc.LocalProtocolError, match="1 bytes received while paused, with room for 0"):
        broker.receive(b"\0")
    for i in range(49):
        broker.send_response(i, messages.HeartbeatResponse())
        assert [event.correlation_id for event in broker.receive(b"")] == [i + 1]


def test_faults_are_found_when_their_turn_comes():
    broker = Connection("broker", max_pending=1)
    assert len(broker.receive(heartbeats(1)[0] + b"\xff\xff\xff\xff")) == 1
    broker.send_response(0, messages.HeartbeatResponse())
    with pytest.raises(kc.RemoteProtocolError, match="negative frame size"):
        broker.receive(b"")
    assert not broker.paused


def test_requests_without_a_response_wait_too():
    produce = encode_request(messages.ProduceRequest(acks=0), 9, 1, "c")
    broker = Connection("broker", max_pending=1)
    assert len(broker.receive(heartbeats(1)[0] + produce * 3)) == 1
    broker.send_response(0, messages.HeartbeatResponse())
    assert [event.wants_response for event in broker.receive(b"")] == [False] * 3
    assert not broker.paused


def test_a_client_is_never_paused():
    client = Connection("client", max_pending=1)
    client.send_request(messages.HeartbeatRequest(), 4)
    assert not client.paused


@given(
    sizes=st.lists(st.integers(1, 200), max_size=40),
    max_pending=st.integers(1, 4),
    choices=st.randoms(use_true_random=False),
)
def test_any_pieces_and_any_order_of_responses(sizes, max_pending, choices):
    """Every request arrives once and in order, and so do the responses, however they are sent."""
    sent = b"".join(heartbeats(20))
    client, broker = Connection("client"), Connection("broker", max_frame_size=100, max_pending=max_pending)
    for i in range(20):
        client.send_request(messages.HeartbeatRequest(group_id=f"g{i}"), 4)
    waiting, seen, answered, at = [], [], [], 0
    while len(answered) < 20:
        size = min(sizes.pop() if sizes else 200, broker.room if broker.paused else 200)
        events = broker.receive(sent[at : at + size])
        at += size
        waiting += events
        seen += [event.message.group_id for event in events]
        assert len(waiting) <= broker.pending <= max_pending
        if waiting and (broker.paused or choices.random() < 0.5):
            event = waiting.pop(choices.randrange(len(waiting)))
            out = broker.send_response(event.correlation_id, messages.HeartbeatResponse(error_code=len(seen)))
            answered += [event.correlation_id for event in client.receive(out)]
    assert seen == [f"g{i}" for i in range(20)]
    assert answered == list(range(20))


def test_kafka07():
    fetch = kafka07.FetchRequest("t", 0, 0, 10)
    broker = kafka07.Connection("broker", max_pending=1)
    assert len(broker.receive(fetch.encode() * 2)) == 1
    with pytest.raises(kc.LocalProtocolError, match=r"send responses, then call receive\(b''\)"):
        broker.receive_end()
    broker.send_response(kafka07.FetchResponse(0, b""))
    assert [event.request for event in broker.receive(b"")] == [fetch]
    broker.send_response(kafka07.FetchResponse(0, b""))
    broker.receive_end()
