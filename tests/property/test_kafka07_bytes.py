"""For any bytes, Kafka 0.6/0.7 decoding returns values or raises documented errors, and values survive encoding."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07 import driver
from kafkacodec.errors import DecodeError, EncodeError, KafkaCodecError, RemoteProtocolError
from tests.dialect_vectors import rows

SETS = [bytes.fromhex(v["hex"]) for v in rows("kafka07/messages") if len(v["hex"]) < 4000]
SETS += [bytes.fromhex(v["hex"]) for v in rows("kafka07/bad") if v["kind"] == "message_set"]
FRAMES = [bytes.fromhex(v["hex"]) for v in rows("kafka07/requests") if len(v["hex"]) < 2000]
ANSWERS = [v for v in rows("kafka07/responses") if len(v["hex"]) < 2000]


@st.composite
def damaged(draw: Any, samples: list[bytes]) -> bytes:
    data = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 5))] = draw(st.binary(max_size=5))
    return bytes(data)


def check_position(error: DecodeError, data: bytes) -> None:
    assert error.position is None or 0 <= error.position <= len(data)


@given(damaged(SETS) | st.binary(max_size=200), st.booleans(), st.booleans())
@settings(deadline=None)
def test_any_bytes_as_a_message_set(data: bytes, deep: bool, verify_crc: bool) -> None:
    stopped = kafka07.decode(data, on_error="stop", deep=deep, verify_crc=verify_crc, batch_columns=True)
    skipped = kafka07.decode(data, on_error="skip", deep=deep, verify_crc=verify_crc)
    values = stopped.to_pyarrow().column("value").to_pylist()
    assert skipped.to_pyarrow().column("value").to_pylist()[: len(values)] == values
    assert 0 <= stopped.consumed <= len(data)
    assert all(0 <= o < n for o, n in zip(stopped["offset"], stopped["next_offset"], strict=True) if n > o)
    try:
        whole = kafka07.decode(data, deep=deep, verify_crc=verify_crc)
    except DecodeError as error:
        assert stopped.problems
        check_position(error, data)
        return
    assert whole.to_pyarrow().column("value").to_pylist() == values
    chunks = list(kafka07.iter_columns(data, max_rows=2, deep=deep, verify_crc=verify_crc))
    assert [v for c in chunks for v in c.to_pyarrow().column("value").to_pylist()] == values
    assert chunks[-1].consumed == whole.consumed


@given(
    st.lists(st.binary(max_size=60), max_size=20),
    st.sampled_from([(0, "none"), (1, "none"), (1, "gzip"), (1, "snappy")]),
    st.integers(0, 1 << 40),
)
@settings(deadline=None)
def test_what_is_encoded_is_decoded(payloads: list[bytes], how: tuple[int, str], start: int) -> None:
    magic, codec = how
    data = kafka07.encode_messages(payloads, magic=magic, codec=codec)
    columns = kafka07.decode(data, initial_offset=start, batch_columns=True)
    table = columns.to_pyarrow()
    assert table.column("value").to_pylist() == payloads
    assert set(table.column("magic").to_pylist()) <= {magic}
    assert set(table.column("codec").to_pylist()) <= {codec}
    assert columns.consumed == len(data)
    if payloads:
        assert columns["next_offset"][-1] == start + len(data)
    for row in range(len(payloads)):
        position = driver.position_after(columns, row)
        rest = kafka07.decode(data[position.offset - start :], initial_offset=position.offset)
        assert rest.to_pyarrow().column("value").to_pylist()[position.skip :] == payloads[row + 1 :]


def is_written(request: kafka07.Request) -> bool:
    """Whether a broker accepts the topics; FETCH is encoded with any topic."""
    if isinstance(request, kafka07.MultiProduceRequest):
        return all(map(is_written, request.requests))
    if isinstance(request, (kafka07.FetchRequest, kafka07.MultiFetchRequest)):
        return True
    try:
        driver.check_topic(request.topic)
    except EncodeError:
        return False
    return True


@given(damaged(FRAMES) | st.binary(max_size=60))
@settings(deadline=None)
def test_any_bytes_as_requests(data: bytes) -> None:
    try:
        request = kafka07.decode_request(data)
    except KafkaCodecError:
        pass
    else:
        if is_written(request):
            assert request.encode() == data
    broker = kafka07.Connection("broker", max_frame_size=1 << 20)
    try:
        broker.receive(data)
        broker.receive_end()
    except RemoteProtocolError:
        with pytest.raises(RemoteProtocolError):
            broker.receive(b"")


@given(st.sampled_from(ANSWERS), st.data())
@settings(deadline=None)
def test_any_bytes_as_responses(vector: dict[str, Any], draws: st.DataObject) -> None:
    request: Any = kafka07.decode_request(bytes.fromhex(vector["request_hex"]))
    data = draws.draw(damaged([bytes.fromhex(vector["hex"])]))
    try:
        response = kafka07.decode_response(data, request)
    except DecodeError as error:
        check_position(error, data)
        return
    assert response.encode() == data
