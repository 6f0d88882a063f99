"""The connection without I/O: both sides connected to each other."""

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.protocol import Connection, RequestReceived, ResponseReceived, VersionsAgreed, VersionsRefused
from kafkacodec.protocol.headers import encode_request_header
from tests.protocol_vectors import vectors


def negotiated(**broker_options):
    """A client and a broker that have agreed on versions."""
    client, broker = Connection("client", client_id="me"), Connection("broker", **broker_options)
    correlation_id, data = client.negotiate()
    (request,) = broker.receive(data)
    response, agreed = client.receive(broker.send_response(correlation_id, broker.api_versions(request)))
    assert isinstance(response, ResponseReceived)
    assert isinstance(agreed, VersionsAgreed)
    return client, broker


def test_negotiation_names_the_software():
    client, broker = Connection("client"), Connection("broker")
    (request,) = broker.receive(client.negotiate()[1])
    named = request.message.client_software_name, request.message.client_software_version
    assert named == ("kafkacodec", kc.__version__.replace("+", "-"))


def test_requests_and_responses():
    client, broker = negotiated()
    correlation_id, data = client.send_request(messages.MetadataRequest(topics=[]))
    (request,) = broker.receive(data)
    assert request.message == messages.MetadataRequest(topics=[])
    assert (request.api_key, request.version, request.header.client_id) == (3, 13, "me")
    (response,) = client.receive(
        broker.send_response(request.correlation_id, messages.MetadataResponse(controller_id=9))
    )
    assert (response.correlation_id, response.message.controller_id) == (correlation_id, 9)
    assert response.request == messages.MetadataRequest(topics=[])
    assert client.pending == broker.pending == 0


def test_byte_by_byte():
    client, broker = negotiated()
    _, data = client.send_request(messages.ListGroupsRequest())
    events = [event for i in range(len(data)) for event in broker.receive(data[i : i + 1])]
    assert [event.message for event in events] == [messages.ListGroupsRequest()]
    answer = broker.send_response(events[0].correlation_id, messages.ListGroupsResponse())
    events = [event for i in range(len(answer)) for event in client.receive(answer[i : i + 1])]
    assert [event.message for event in events] == [messages.ListGroupsResponse()]


def test_answers_leave_in_the_order_of_the_requests():
    client, broker = negotiated()
    sent = [client.send_request(messages.HeartbeatRequest(group_id=str(i))) for i in range(3)]
    requests = broker.receive(b"".join(data for _, data in sent))
    assert [r.message.group_id for r in requests] == ["0", "1", "2"]
    ids = [r.correlation_id for r in requests]
    assert broker.send_response(ids[1], messages.HeartbeatResponse(error_code=1)) == b""
    assert broker.send_response(ids[2], messages.HeartbeatResponse(error_code=2)) == b""
    events = client.receive(broker.send_response(ids[0], messages.HeartbeatResponse(error_code=0)))
    assert [(e.correlation_id, e.message.error_code) for e in events] == [(ids[i], i) for i in range(3)]


def test_produce_without_acks_has_no_response():
    client, broker = negotiated()
    _, first = client.send_request(messages.ProduceRequest(acks=0))
    second_id, second = client.send_request(messages.HeartbeatRequest())
    events = broker.receive(first + second)
    assert [event.wants_response for event in events] == [False, True]
    with pytest.raises(kc.LocalProtocolError):
        broker.send_response(events[0].correlation_id, messages.ProduceResponse())
    (event,) = client.receive(broker.send_response(second_id, messages.HeartbeatResponse()))
    assert event.correlation_id == second_id


def test_negotiation_falls_back():
    client, broker = Connection("client"), Connection("broker", versions={18: range(0, 3), 3: range(0, 6)})
    correlation_id, data = client.negotiate()
    (request,) = broker.receive(data)
    assert isinstance(request, RequestReceived)
    assert request.message is None
    response, refused = client.receive(broker.send_response(correlation_id, broker.api_versions(request)))
    assert response.message.error_code == 35
    assert isinstance(refused, VersionsRefused)
    correlation_id, data = client.negotiate()
    (request,) = broker.receive(data)
    assert request.version == 2
    _, agreed = client.receive(broker.send_response(correlation_id, broker.api_versions(request)))
    assert agreed.ranges == {18: range(0, 3), 3: range(0, 6)}
    assert client.version_of(3) == 5
    with pytest.raises(kc.UnsupportedVersion):
        client.send_request(messages.ListGroupsRequest())


def test_an_old_broker_names_no_versions_when_it_refuses():
    client = Connection("client")
    _, data = client.negotiate()
    refusal = messages.ApiVersionsResponse(error_code=35)
    client.receive(refusal.encode_frame(0, messages.ResponseHeader(correlation_id=0).encode(0)))
    _, data = client.negotiate()
    assert protocol.decode_request(data)[0].request_api_version == 0


def test_versions_must_be_known():
    client = Connection("client")
    with pytest.raises(kc.LocalProtocolError):
        client.send_request(messages.MetadataRequest())
    correlation_id, _ = client.send_request(messages.MetadataRequest(), 1)
    assert correlation_id == 0


def test_correlation_ids_must_match():
    client, _ = negotiated()
    correlation_id, _ = client.send_request(messages.HeartbeatRequest())
    wrong = protocol.encode_response(messages.HeartbeatResponse(), 4, correlation_id + 1)
    with pytest.raises(kc.RemoteProtocolError, match="correlation id"):
        client.receive(wrong)
    with pytest.raises(kc.RemoteProtocolError, match="correlation id"):
        client.receive(b"")
    with pytest.raises(kc.LocalProtocolError, match="has failed"):
        client.send_request(messages.HeartbeatRequest())


def test_a_response_that_nobody_asked_for():
    client = Connection("client")
    with pytest.raises(kc.RemoteProtocolError, match="no request is pending"):
        client.receive(protocol.encode_response(messages.HeartbeatResponse(), 4, 0))


def test_what_came_before_a_fault_is_not_lost():
    client, broker = negotiated()
    first, one = client.send_request(messages.HeartbeatRequest(group_id="a"))
    _, two = client.send_request(messages.HeartbeatRequest(group_id="b"))
    damaged = two[:-3] + b"\xff" * 3
    with pytest.raises(kc.RemoteProtocolError) as caught:
        broker.receive(one + damaged + one)
    (event,) = caught.value.events
    assert (event.correlation_id, event.message.group_id) == (first, "a")
    with pytest.raises(kc.RemoteProtocolError) as caught:
        broker.receive(one)
    assert caught.value.events == []


def test_a_response_is_kept_where_the_next_has_no_request():
    client, _ = negotiated()
    correlation_id, _ = client.send_request(messages.HeartbeatRequest())
    answer = protocol.encode_response(messages.HeartbeatResponse(), 4, correlation_id)
    with pytest.raises(kc.RemoteProtocolError, match="no request is pending") as caught:
        client.receive(answer + answer)
    assert [event.correlation_id for event in caught.value.events] == [correlation_id]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\x08\x03\xe7\0\0\0\0\0\0",
        b"\0\0\0\x0a\0\x03\0\x63\0\0\0\0\xff\xff",
        b"\0\0\0\x0a\0\x03\0\0\0\0\0\0\xff\xff",
    ],
    ids=["negative size", "huge size", "no header", "unknown API", "unknown version", "no body"],
)
def test_a_broker_refuses(data):
    broker = Connection("broker")
    with pytest.raises(kc.RemoteProtocolError):
        broker.receive(data)


def test_memory_is_bounded():
    broker = Connection("broker", max_frame_size=100, max_pending=2)
    with pytest.raises(kc.RemoteProtocolError, match="exceeds the limit of 100"):
        broker.receive((101).to_bytes(4, "big"))
    client = Connection("client", max_pending=1)
    client.send_request(messages.HeartbeatRequest(), 0)
    with pytest.raises(kc.LocalProtocolError, match=r"too many pending requests \(at most 1\)"):
        client.send_request(messages.HeartbeatRequest(), 0)


def test_sides_are_kept_apart():
    client, broker = Connection("client"), Connection("broker")
    with pytest.raises(kc.LocalProtocolError):
        broker.send_request(messages.HeartbeatRequest(), 0)
    with pytest.raises(kc.LocalProtocolError):
        client.send_response(0, messages.HeartbeatResponse())
    with pytest.raises(kc.LocalProtocolError, match="not a request: HeartbeatResponse"):
        client.send_request(messages.HeartbeatResponse(), 0)
    with pytest.raises(ValueError, match="role"):
        Connection("proxy")


def test_an_answer_of_another_api_is_refused():
    client, broker = negotiated()
    (request,) = broker.receive(client.send_request(messages.HeartbeatRequest())[1])
    with pytest.raises(kc.LocalProtocolError, match="not a response to Heartbeat: MetadataResponse"):
        broker.send_response(request.correlation_id, messages.MetadataResponse())
    assert broker.pending == 1


@pytest.mark.parametrize("thing", ["text", None, messages.MetadataResponse(), messages.OffsetCommitKey()])
def test_what_is_no_request_is_refused(thing):
    with pytest.raises(kc.LocalProtocolError, match="not a request"):
        Connection("client").send_request(thing, 0)


@pytest.mark.parametrize("options", [{"max_frame_size": 0}, {"max_pending": 0}])
def test_limits_that_let_nothing_in(options):
    with pytest.raises(ValueError, match="at least 1"):
        Connection("client", **options)


def test_client_id_and_header_tags_of_one_request():
    client, broker = negotiated()
    named = [
        client.send_request(messages.HeartbeatRequest()),
        client.send_request(messages.HeartbeatRequest(), client_id="other", header_tags={7: b"trace"}),
        client.send_request(messages.HeartbeatRequest(), client_id=None),
        client.send_request(messages.HeartbeatRequest()),
    ]
    headers = [event.header for event in broker.receive(b"".join(data for _, data in named))]
    assert [header.client_id for header in headers] == ["me", "other", None, "me"]
    assert [header.unknown_tagged_fields for header in headers] == [{}, {7: b"trace"}, {}, {}]


def test_header_tags_need_a_flexible_version():
    client = Connection("client")
    with pytest.raises(kc.EncodeError, match="has no tagged fields"):
        client.send_request(messages.HeartbeatRequest(), 3, header_tags={7: b"trace"})
    assert client.pending == 0
    assert client.send_request(messages.HeartbeatRequest(), 3)[0] == 0


# kafka-go's DescribeAcls requests of versions 2 and 3 end with a byte too many.
ACLS = protocol.encode_request(messages.DescribeAclsRequest(resource_type_filter=2), 3, 5, "kafka-go")
ACLS_LONGER = (len(ACLS) - 4 + 1).to_bytes(4, "big") + ACLS[4:] + b"\0"


def test_bytes_after_a_request_are_refused():
    with pytest.raises(kc.RemoteProtocolError, match="unexpected bytes after the message"):
        Connection("broker").receive(ACLS_LONGER)


def test_bytes_after_a_request_are_reported_where_they_are_allowed():
    broker = Connection("broker", allow_trailing_bytes=True)
    longer, plain = broker.receive(ACLS_LONGER + ACLS)
    assert (longer.trailing, plain.trailing) == (b"\0", b"")
    assert longer.message == plain.message == messages.DescribeAclsRequest(resource_type_filter=2)
    (unknown,) = broker.receive(bytes.fromhex("0000000b0012006300000001ffff00"))
    assert (unknown.message, unknown.trailing) == (None, b"")


def test_damage_inside_a_request_is_refused_anyway():
    with pytest.raises(kc.RemoteProtocolError):
        Connection("broker", allow_trailing_bytes=True).receive((len(ACLS) - 5).to_bytes(4, "big") + ACLS[4:-1])


def test_what_kafka_reads_with_bytes_to_spare():
    """Every request with an extra byte that Kafka's reader accepted, as its golden data records."""
    found = 0
    for vector in vectors("bad"):
        if (vector["kind"], vector["case"]) != ("request", "trailing-1"):
            continue
        remaining = [result["remaining"] for result in vector["java"].values() if result.get("remaining")]
        api, version, body = vector["key"], vector["version"], bytes.fromhex(vector["hex"])
        if not remaining:
            continue
        header = encode_request_header(api, version, 1, "c")
        frame = (len(header) + len(body)).to_bytes(4, "big") + header + body
        with pytest.raises(kc.RemoteProtocolError, match="unexpected bytes after the message"):
            Connection("broker").receive(frame)
        (event,) = Connection("broker", allow_trailing_bytes=True).receive(frame)
        assert event.trailing == body[-remaining[0] :]
        assert event.message == messages.by_key(api)[0].decode(body[: -remaining[0]], version)
        found += 1
    assert found > 80


MOCK_REFUSAL = bytes.fromhex("000000110000000000230100120000000200000000")
"""What the mock cluster of librdkafka 2.16.0 answers to ApiVersions of version 4, with correlation id 0."""


def test_a_refusal_of_api_versions_in_another_layout():
    with pytest.raises(kc.RemoteProtocolError, match="ApiVersionsResponse v0"):
        negotiating(Connection("client")).receive(MOCK_REFUSAL)
    client = negotiating(Connection("client", allow_trailing_bytes=True))
    answer, refused = client.receive(MOCK_REFUSAL)
    assert (answer.message.error_code, answer.version) == (35, 0)
    assert isinstance(refused, VersionsRefused)
    _, again = client.negotiate()
    assert again[6:8] == b"\0\0"


def negotiating(client):
    client.negotiate()
    return client


@pytest.mark.parametrize("extra", [b"\0", b"more"])
def test_bytes_after_a_response_are_reported_where_they_are_allowed(extra):
    _, frame = answered(messages.MetadataResponse(controller_id=3), extra)
    with pytest.raises(kc.RemoteProtocolError, match="unexpected bytes after the message"):
        asking(Connection("client")).receive(frame)
    (event,) = asking(Connection("client", allow_trailing_bytes=True)).receive(frame)
    assert (event.message.controller_id, event.trailing) == (3, extra)


def asking(client):
    client.send_request(messages.MetadataRequest(), 12)
    return client


def answered(message, extra):
    frame = protocol.encode_response(message, 12, 0)
    return message, (len(frame) - 4 + len(extra)).to_bytes(4, "big") + frame[4:] + extra


def test_damage_inside_a_response_is_refused_anyway():
    _, frame = answered(messages.MetadataResponse(controller_id=3), b"")
    with pytest.raises(kc.RemoteProtocolError):
        asking(Connection("client", allow_trailing_bytes=True)).receive(
            (len(frame) - 5).to_bytes(4, "big") + frame[4:-1]
        )


def test_a_frame_in_memory_of_the_caller():
    """Records are views of the frame, and nothing is copied."""
    client = Connection("client", versions={1: range(4, 5)})
    client.send_request(messages.FetchRequest(), 4)
    partition = messages.FetchResponse.PartitionData(records=b"records")
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    frame = bytearray(protocol.encode_response(messages.FetchResponse(responses=[topic]), 4, 0))
    (event,) = client.receive_frame(frame)
    records = event.message.responses[0].partitions[0].records
    frame[frame.index(b"records")] = ord("R")
    assert bytes(records) == b"Records"


def test_a_frame_after_a_part_of_another():
    client = Connection("client")
    client.send_request(messages.FetchRequest(), 4)
    client.receive(b"\x00\x00")
    with pytest.raises(kc.LocalProtocolError, match="2 bytes of an incomplete frame"):
        client.receive_frame(b"\x00\x00\x00\x00")
    with pytest.raises(kc.LocalProtocolError, match="only a client"):
        Connection("broker").receive_frame(b"\x00\x00\x00\x00")


def test_which_requests_are_answered():
    client = Connection("client")
    number, _ = client.send_request(messages.ProduceRequest(acks=0), 3)
    assert not client.expects(number)
    number, _ = client.send_request(messages.ProduceRequest(acks=1), 3)
    assert client.expects(number)
