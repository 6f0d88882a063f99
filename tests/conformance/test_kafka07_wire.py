"""Requests, responses and connections of Kafka 0.6/0.7, compared with traffic of real brokers and clients."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07 import driver
from kafkacodec.errors import (
    BrokerError,
    DecodeError,
    EncodeError,
    KafkaCodecError,
    LimitExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    Truncated,
)
from tests.dialect_vectors import ROOT, names, rows

REQUESTS = rows("kafka07/requests")
RESPONSES = rows("kafka07/responses")
BAD = rows("kafka07/bad")
BAD_REQUESTS = [v for v in BAD if v["layer"] == "broker" and v["hex"] is not None]
BAD_RESPONSES = [v for v in BAD if v["kind"] == "response"]
KINDS = {
    "produce": kafka07.ProduceRequest,
    "fetch": kafka07.FetchRequest,
    "multifetch": kafka07.MultiFetchRequest,
    "multiproduce": kafka07.MultiProduceRequest,
    "offsets": kafka07.OffsetsRequest,
}


def request_from(kind: str, fields: dict[str, Any]) -> Any:
    if kind == "multifetch":
        return kafka07.MultiFetchRequest(tuple(request_from("fetch", f) for f in fields["fetches"]))
    if kind == "multiproduce":
        return kafka07.MultiProduceRequest(tuple(request_from("produce", p) for p in fields["produces"]))
    cls = KINDS[kind]
    values = {field.name: fields[field.name] for field in dataclasses.fields(cls)}
    if kind == "produce":
        values["message_set"] = bytes.fromhex(fields["message_set"])
    return cls(**values)


@pytest.mark.parametrize("vector", REQUESTS, ids=names(REQUESTS))
def test_requests_both_ways(vector: dict[str, Any]) -> None:
    frame = bytes.fromhex(vector["hex"])
    want = request_from(vector["kind"], vector["json"])
    assert kafka07.decode_request(frame) == want
    assert want.encode() == frame
    assert kafka07.decode_request(frame).encode() == frame


@pytest.mark.parametrize("vector", RESPONSES, ids=names(RESPONSES))
def test_responses_both_ways(vector: dict[str, Any]) -> None:
    frame, json = bytes.fromhex(vector["hex"]), vector["json"]
    request: Any = kafka07.decode_request(bytes.fromhex(vector["request_hex"]))
    response: Any = kafka07.decode_response(frame, request)
    assert response.encode() == frame
    assert response.error_code == json.get("error_code", 0)
    if vector["kind"] == "offsets":
        assert list(response.offsets) == json["offsets"]
        return
    pairs = [(request, response, json)]
    if vector["kind"] == "multifetch":
        pairs = list(zip(request.requests, response.responses, json["sets"], strict=True))
    for asked, answered, want in pairs:
        assert answered.error_code == want["error_code"]
        assert bytes(answered.message_set).hex() == want["message_set"]
        if answered.error_code:
            with pytest.raises(BrokerError, match=kafka07.ErrorCode(answered.error_code).name):
                driver.read_fetch(asked, answered)
        elif asked.max_size < 4:
            with pytest.raises(Truncated, match="holds no message"):
                driver.read_fetch(asked, answered)
        elif want["decoded"]["deep"]["error"] is None:
            columns = driver.read_fetch(asked, answered)
            assert columns["next_offset"].tolist() == [m["next_offset"] for m in want["decoded"]["deep"]["messages"]]


# A real broker ignores bytes after a request, and fails in its own way for a null topic.
LENIENT_BROKER = {"multifetch-count-too-small", "fetch-trailing-bytes", "produce-trailing-bytes"}
LENIENT_BROKER |= {"produce-set-size-too-small"}
# Requests that only a broker with a log, limits and a file system refuses.
NOT_THE_CODECS = ("produce-", "multiproduce-", "offsets-", "fetch-max-size", "half-closed", "two-")


@pytest.mark.parametrize("vector", BAD_REQUESTS, ids=names(BAD_REQUESTS))
def test_bad_requests(vector: dict[str, Any]) -> None:
    data, real = bytes.fromhex(vector["hex"]), vector["real"]
    broker = kafka07.Connection("broker", max_frame_size=2_000_000)
    try:
        events = broker.receive(data)
        broker.receive_end()
    except RemoteProtocolError:
        refused = real["connection"] == "closed" or vector["name"] in LENIENT_BROKER
        assert refused or vector["name"] == "length-counts-itself"
        with pytest.raises(RemoteProtocolError):
            broker.receive(b"")
        return
    if real["connection"] == "closed":
        assert vector["name"].startswith(NOT_THE_CODECS)
    assert sum(event.wants_response for event in events) == broker.pending


@pytest.mark.parametrize("vector", BAD_RESPONSES, ids=names(BAD_RESPONSES))
def test_bad_responses(vector: dict[str, Any]) -> None:
    data, real = bytes.fromhex(vector["hex"]), vector["real"]
    fetches = [kafka07.FetchRequest("t", 0, offset, 1000) for offset in vector["fetch_offsets"] or ()]
    request: Any = {
        "fetch": fetches[0] if fetches else None,
        "multifetch": kafka07.MultiFetchRequest(fetches),
        "offsets": kafka07.OffsetsRequest("t", 0, -1, 10),
    }[vector["response_kind"]]
    client = kafka07.Connection("client")
    client.send_request(request)
    # The real client fails for an error without a list of offsets; here it is a response with that error.
    if "error" in real and vector["name"] != "response-offsets-error-no-body":
        with pytest.raises(RemoteProtocolError):
            client.receive(data) or client.receive_end()
        return
    (event,) = client.receive(data)
    assert isinstance(event, kafka07.ResponseReceived)
    response: Any = event.response
    if "error_code" in real:
        assert response.error_code == real["error_code"]
    if "offsets" in real:
        assert response.offsets == real["offsets"]
    if "sets" in real:
        assert [bytes(r.message_set).hex() for r in response.responses] == [s["bytes"] for s in real["sets"]]


def test_a_conversation_byte_by_byte() -> None:
    """All golden requests and their responses over one connection, in pieces of 1, 2, 3 ... bytes."""
    client, broker = kafka07.Connection("client"), kafka07.Connection("broker")
    sent = bytearray()
    answers = bytearray()
    for vector in RESPONSES:
        request = kafka07.decode_request(bytes.fromhex(vector["request_hex"]))
        sent += client.send_request(kafka07.ProduceRequest("t", -1, b"")) + client.send_request(request)
        answers += bytes.fromhex(vector["hex"])
    received: list[Any] = []
    at = 0
    while at < len(sent):
        size = 1 + len(received) % 7
        received += broker.receive(sent[at : at + size])
        at += size
    assert [event.wants_response for event in received] == [False, True] * len(RESPONSES)
    assert broker.pending == client.pending == len(RESPONSES)
    answered: list[Any] = []
    for start in range(0, len(answers), 1000):
        answered += client.receive(answers[start : start + 1000])
    assert client.pending == 0
    assert b"".join(broker.send_response(event.response) for event in answered) == answers
    broker.receive_end()
    client.receive_end()


def test_illegal_steps_change_nothing() -> None:
    fetch = kafka07.FetchRequest("t", 0, 0, 10)
    client = kafka07.Connection("client", max_pending=1)
    with pytest.raises(LocalProtocolError):
        client.send_response(kafka07.FetchResponse(0, b""))
    with pytest.raises(EncodeError):
        client.send_request(kafka07.FetchRequest("t", 1 << 31, 0, 10))
    assert client.pending == 0
    data = client.send_request(fetch)
    with pytest.raises(LocalProtocolError):
        client.send_request(fetch)
    client.send_request(kafka07.ProduceRequest("t", 0, b""))
    broker = kafka07.Connection("broker")
    with pytest.raises(LocalProtocolError):
        broker.send_response(kafka07.FetchResponse(0, b""))
    broker.receive(data)
    for wrong in (kafka07.OffsetsResponse(0, ()), kafka07.MultiFetchResponse(0, ())):
        with pytest.raises(LocalProtocolError):
            broker.send_response(wrong)
    with pytest.raises(EncodeError):
        broker.send_response(kafka07.FetchResponse(1 << 15, b""))
    assert broker.pending == 1
    (event,) = client.receive(broker.send_response(kafka07.FetchResponse(0, b"abc")))
    assert isinstance(event, kafka07.ResponseReceived)
    assert event.request == fetch
    with pytest.raises(RemoteProtocolError):
        client.receive(b"\0\0\0\2\0\0")
    with pytest.raises(LocalProtocolError):
        client.send_request(fetch)
    with pytest.raises(LocalProtocolError):
        kafka07.decode_response(b"\0\0\0\2\0\0", kafka07.ProduceRequest("t", 0, b""))
    broker.receive(kafka07.MultiFetchRequest((fetch, fetch)).encode())
    with pytest.raises(LocalProtocolError):
        broker.send_response(kafka07.MultiFetchResponse(0, (kafka07.FetchResponse(0, b""),)))


def test_positions_and_paths_of_faults() -> None:
    frame = kafka07.MultiFetchRequest((kafka07.FetchRequest("topic", 0, 0, 10),) * 2).encode()
    with pytest.raises(DecodeError) as caught:
        kafka07.decode_request(frame[:3] + bytes([frame[3] - 2]) + frame[4:-2])
    assert caught.value.path == "requests[1].max_size"
    assert caught.value.position is not None
    with pytest.raises(LimitExceeded):
        kafka07.decode_request(b"\x7f\xff\xff\xff\0\0")
    with pytest.raises(Truncated):
        kafka07.decode_request(frame[:-1])


def segments_of(topic: str) -> list[driver.Segment]:
    entries = [e for e in rows("kafka07/segments/index") if e.get("topic") == topic and e["broker_id"] == 0]
    files = [(e["start_offset"], ROOT / "kafka07" / e["file"]) for e in entries if e["partition"] == 0]
    return [driver.Segment(start, path.read_bytes()) for start, path in sorted(files)]


def is_answered_from_segments(vector: dict[str, Any]) -> bool:
    """Whether the files are unchanged since the response, which does not depend on the clock."""
    if vector["kind"] not in ("fetch", "offsets"):
        return False
    request: Any = kafka07.decode_request(bytes.fromhex(vector["request_hex"]))
    topics = ("rolling", "short", "orders", "orders3p", "no-such-topic", "absent")
    return request.topic in topics and request.partition == 0 and getattr(request, "time", -1) < 0


ANSWERED = [v for v in RESPONSES if is_answered_from_segments(v)]


@pytest.mark.parametrize("vector", ANSWERED, ids=names(ANSWERED))
def test_segments_answer_as_the_broker_did(vector: dict[str, Any]) -> None:
    request: Any = kafka07.decode_request(bytes.fromhex(vector["request_hex"]))
    answer: Any = driver.answer_fetch if vector["kind"] == "fetch" else driver.answer_offsets
    assert answer(segments_of(request.topic), request).encode().hex() == vector["hex"]


def test_offsets_by_time() -> None:
    segments = [driver.Segment(start, b"x" * 100, modified) for start, modified in ((0, 10), (100, 20), (200, 30))]
    for time, want in ((9, ()), (10, (0,)), (25, (100, 0)), (99, (200, 100, 0)), (-3, ())):
        request = kafka07.OffsetsRequest("t", 0, time, 10)
        assert driver.answer_offsets(segments, request) == kafka07.OffsetsResponse(0, want)


def fetch_all(segments: list[driver.Segment], offset: int, max_size: int) -> list[bytes]:
    """A consumer whose first fetch size is too small for some messages."""
    values: list[bytes] = []
    request = kafka07.FetchRequest("t", 0, offset, max_size)
    while True:
        response = driver.answer_fetch(segments, request)
        larger = driver.larger_fetch(request, response.message_set, limit=1 << 20)
        if larger is not None:
            request = larger
            continue
        columns = driver.read_fetch(request, response)
        if not len(columns):
            return values
        values += columns.to_pyarrow().column("value").to_pylist()
        request = driver.next_fetch(request, columns)


@pytest.mark.parametrize("max_size", [0, 1, 3, 50, 200, 1 << 20])
@pytest.mark.parametrize("topic", ["rolling", "short", "orders", "clicks-eu"])
def test_a_consumer_reads_all_segments_whatever_its_fetch_size(topic: str, max_size: int) -> None:
    segments = segments_of(topic)
    whole = [kafka07.decode(s.data, initial_offset=s.start).to_pyarrow() for s in segments]
    want = [value for part in whole for value in part.column("value").to_pylist()]
    assert fetch_all(segments, segments[0].start, max_size) == want


def test_a_consumer_can_stop_anywhere() -> None:
    (segment,) = segments_of("orders")
    columns = kafka07.decode(segment.data)
    values = columns.to_pyarrow().column("value").to_pylist()
    for row in range(len(values)):
        position = driver.position_after(columns, row)
        again = kafka07.decode(segment.data[position.offset :], initial_offset=position.offset)
        assert again.to_pyarrow().column("value").to_pylist()[position.skip :] == values[row + 1 :]


def test_faults_of_larger_fetch() -> None:
    request = kafka07.FetchRequest("t", 0, 0, 8)
    with pytest.raises(LimitExceeded):
        driver.larger_fetch(request, b"\xff\xff\xff\xff1234", limit=1000)
    with pytest.raises(Truncated):
        driver.larger_fetch(request, b"\0\0\0\x10123", limit=1000)
    assert driver.larger_fetch(request, b"", limit=1000) is None
    assert driver.larger_fetch(request, b"12", limit=1000) is None


@pytest.mark.parametrize("max_size", range(4))
def test_a_fetch_too_small_for_any_message_is_an_error_and_not_the_end(max_size: int) -> None:
    """A real broker answers such a fetch with a few bytes, which look like the end of the log."""
    vectors = {v["json"]["max_size"]: v for v in REQUESTS if v["name"] in ("fetch/three-bytes", "fetch/max-size-zero")}
    request: Any = kafka07.FetchRequest("orders", 0, 0, max_size)
    if max_size in vectors:
        assert request == request_from("fetch", vectors[max_size]["json"])
    segments = segments_of("orders")
    with pytest.raises(Truncated, match=f"{max_size} bytes holds no message.*at least 9"):
        driver.read_fetch(request, driver.answer_fetch(segments, request))
    larger = driver.larger_fetch(request, driver.answer_fetch(segments, request).message_set, limit=1000)
    assert larger is not None
    assert larger.max_size == max_size + 4
    at_the_end = dataclasses.replace(request, offset=segments[-1].end)
    if max_size:
        assert len(driver.read_fetch(at_the_end, driver.answer_fetch(segments, at_the_end))) == 0
    with pytest.raises(LimitExceeded):
        driver.larger_fetch(request, driver.answer_fetch(segments, request).message_set, limit=3)


ILLEGAL_TOPICS = ("", ".", "..", "a/b", "a\0", "x" * 256, "\U0001f600" * 128)


@pytest.mark.parametrize("topic", ILLEGAL_TOPICS, ids=repr)
def test_topics_that_a_broker_refuses_are_not_written(topic: str) -> None:
    """The broker closes the connection for these topics, except for FETCH, which it answers with error -1."""
    produce = kafka07.ProduceRequest(topic, 0, b"")
    for request, path in (
        (produce, "topic"),
        (kafka07.OffsetsRequest(topic, 0, -1, 1), "topic"),
        (kafka07.MultiProduceRequest((kafka07.ProduceRequest("t", 0, b""), produce)), "requests[1].topic"),
    ):
        with pytest.raises(EncodeError, match="invalid topic name") as caught:
            request.encode()
        assert caught.value.path == path
        client = kafka07.Connection("client")
        with pytest.raises(EncodeError):
            client.send_request(request)
        assert client.pending == 0


def test_topics_that_a_broker_refuses_can_be_read() -> None:
    """A broker must be able to answer with an error."""
    for name in ("produce-empty-topic", "produce-illegal-topic", "offsets-illegal-topic"):
        (vector,) = (v for v in BAD_REQUESTS if v["name"] == name)
        request: Any = kafka07.decode_request(bytes.fromhex(vector["hex"]))
        with pytest.raises(EncodeError):
            driver.check_topic(request.topic)
        with pytest.raises(EncodeError):
            request.encode()


def test_topics() -> None:
    for good in ("orders", "clicks.eu", "заказы", "...", "x" * 255):
        assert driver.check_topic(good) == good
    for bad in ("", ".", "..", "a/b", "a\0", "x" * 256, "\ud800"):
        with pytest.raises(KafkaCodecError):
            driver.check_topic(bad)
