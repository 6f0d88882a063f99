"""Frames in pieces: large records are written from where they are, and the bytes are those of the whole frame."""

from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.protocol import Connection

LARGE = 16384
FETCH, PRODUCE = 12, 9
SIZES = (0, 1, 100, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE)


def fetched(*records):
    partitions = [messages.FetchResponse.PartitionData(partition_index=i, records=r) for i, r in enumerate(records)]
    topic = messages.FetchResponse.FetchableTopicResponse(topic="orders", partitions=partitions)
    return messages.FetchResponse(responses=[topic])


def produced(*records):
    parts = [messages.ProduceRequest.PartitionProduceData(index=i, records=r) for i, r in enumerate(records)]
    return messages.ProduceRequest(
        acks=-1, topic_data=[messages.ProduceRequest.TopicProduceData(name="orders", partition_data=parts)]
    )


def content(size):
    return bytes(i % 251 for i in range(size))


@pytest.fixture
def connected():
    client, broker = Connection("client"), Connection("broker")
    (request,) = broker.receive(client.negotiate()[1])
    client.receive(broker.send_response(request.correlation_id, broker.api_versions(request)))
    return client, broker


def asked(client, broker, count=1):
    return broker.receive(b"".join(client.send_request(messages.FetchRequest(), FETCH)[1] for _ in range(count)))


def views_of(pieces, data):
    return [piece for piece in pieces if isinstance(piece, memoryview) and piece.obj is data]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_pieces_are_the_frame(kind):
    records = [kind(content(size)) for size in SIZES]
    for message, version, whole, pieces in (
        (fetched(*records), FETCH, protocol.encode_response, protocol.response_pieces),
        (fetched(*records, None), 4, protocol.encode_response, protocol.response_pieces),
        (produced(*records), PRODUCE, protocol.encode_request, protocol.request_pieces),
        (produced(*records), 3, protocol.encode_request, protocol.request_pieces),
        (messages.HeartbeatRequest(), 4, protocol.encode_request, protocol.request_pieces),
    ):
        made = pieces(message, version, 7)
        assert b"".join(made) == whole(message, version, 7), (type(message).__name__, version)
        large = 0 if isinstance(message, messages.HeartbeatRequest) else sum(size >= LARGE for size in SIZES)
        assert sum(len(views_of(made, getattr(data, "obj", data))) for data in records) == large


def test_frames_of_megabytes():
    """From the second on they are made of pieces."""
    for size in (3, 1 << 20, 3 << 20, 3, 1 << 20):
        data = content(size)
        frame = protocol.encode_response(fetched(data, b"more"), FETCH, 7)
        message: Any = protocol.decode_response(frame, 1, FETCH)[1]
        assert [bytes(p.records) for p in message.responses[0].partitions] == [data, b"more"]
        assert b"".join(protocol.response_pieces(fetched(data, b"more"), FETCH, 7)) == frame


def test_large_records_are_not_copied_and_small_ones_are():
    small, large = bytearray(content(LARGE - 1)), bytearray(content(LARGE))
    pieces = protocol.response_pieces(fetched(small, large, small), FETCH, 7)
    (view,) = views_of(pieces, large)
    assert view.nbytes == LARGE
    assert views_of(pieces, small) == []
    with pytest.raises(BufferError):
        large.append(0)
    del pieces, view
    large.append(0)


def test_records_of_a_decoded_message_are_views_of_what_was_received():
    """A proxy that passes a fetch response on."""
    received = protocol.encode_response(fetched(content(2 * LARGE), content(5)), FETCH, 7)
    _, message = protocol.decode_response(received, 1, FETCH)
    pieces = protocol.response_pieces(message, FETCH, 7)
    assert len(views_of(pieces, received)) == 1
    assert b"".join(pieces) == received


def test_records_of_several_dimensions():
    grid = memoryview(bytearray(content(4 * LARGE))).cast("B", [4, LARGE])
    assert b"".join(protocol.response_pieces(fetched(grid), FETCH, 7)) == protocol.encode_response(
        fetched(grid), FETCH, 7
    )


@pytest.mark.parametrize("wrong", ["text", 7, memoryview(bytes(4 * LARGE))[::2]])
def test_errors_are_those_of_the_whole_frame(wrong):
    said = []
    for encode in (protocol.encode_response, protocol.response_pieces):
        with pytest.raises(kc.EncodeError) as caught:
            encode(fetched(content(LARGE), wrong), FETCH, 7)
        said.append((caught.value.path, str(caught.value).partition(", got")[0]))
    assert said[0] == said[1]
    assert said[0][0] == "responses[0].partitions[1].records"


def test_records_in_a_tagged_field_stay_in_one_piece():
    """The field's size stands before it."""
    table = """data Nested versions=0 flexible=0+
  Inner Part 0+ tag=0
    Data records 0+ null
"""
    Nested: Any = messages.build(table, __name__)["Nested"]
    message = Nested(inner=Nested.Part(data=content(2 * LARGE)))
    assert b"".join(message.encode_frame_pieces(0, b"head")) == message.encode_frame(0, b"head")


def test_responses_in_pieces(connected):
    client, broker = connected
    first, second, third = asked(client, broker, 3)
    kept, large = bytearray(content(2 * LARGE)), bytearray(content(LARGE))
    assert broker.send_response_pieces(second.correlation_id, fetched(kept)) == []
    early = broker.send_response(third.correlation_id, fetched(large))
    assert early == b""
    large[:] = bytes(LARGE)  # a response that is encoded at once is not changed by this
    pieces = broker.send_response_pieces(first.correlation_id, fetched(b"first"))
    assert len(views_of(pieces, kept)) == 1
    answers = client.receive(b"".join(pieces))
    sent = [bytes(answer.message.responses[0].partitions[0].records) for answer in answers]
    assert sent == [b"first", kept, content(LARGE)]
    assert client.pending == broker.pending == 0


def test_requests_in_pieces(connected):
    client, broker = connected
    records = bytearray(content(LARGE))
    number, pieces = client.send_request_pieces(
        produced(records), PRODUCE, client_id="other", header_tags={7: b"trace"}
    )
    assert len(views_of(pieces, records)) == 1
    (request,) = broker.receive(b"".join(pieces))
    assert (request.correlation_id, request.header.client_id) == (number, "other")
    assert request.header.unknown_tagged_fields == {7: b"trace"}
    assert request.message == produced(records)


def test_faults_change_nothing(connected):
    client, broker = connected
    (request,) = asked(client, broker)
    for number, message, error in (
        (request.correlation_id + 1, fetched(), kc.LocalProtocolError),
        (request.correlation_id, messages.MetadataResponse(), kc.LocalProtocolError),
        (request.correlation_id, fetched("text"), kc.EncodeError),
    ):
        for send in (broker.send_response, broker.send_response_pieces):
            with pytest.raises(error):
                send(number, message)
    assert broker.pending == 1
    assert client.receive(broker.send_response(request.correlation_id, fetched(b"x")))
    with pytest.raises(kc.LocalProtocolError, match="no pending request"):
        broker.send_response(request.correlation_id, fetched(b"x"))


def test_a_correlation_id_that_is_used_twice():
    """The answers belong to the requests in their order."""
    broker = Connection("broker")
    one = protocol.encode_request(messages.HeartbeatRequest(), 4, 5)
    other = protocol.encode_request(messages.MetadataRequest(), 12, 5)
    broker.receive(one + other)
    with pytest.raises(kc.LocalProtocolError, match="not a response to Heartbeat"):
        broker.send_response(5, messages.MetadataResponse())
    assert broker.send_response(5, messages.HeartbeatResponse())
    assert broker.send_response(5, messages.MetadataResponse())
    assert broker.pending == 0
