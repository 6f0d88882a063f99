"""Which objects hold the caller's buffer, and for how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07._decoder import Decoder as Kafka07Decoder
from kafkacodec.dialects.line.reading import split_lines
from kafkacodec.dialects.rewrite import frames as rewrite_frames
from kafkacodec.log.segments._resync import Resync
from kafkacodec.messages import consumer_protocol, stored
from kafkacodec.protocol import headers
from kafkacodec.records._decoder import Decoder, record_columns
from tests.processes import run_python

DATA = kc.encode([(b"key", b"value")] * 3)
OLD = kafka07.encode_messages([b"payload"] * 3)


def damaged(data: bytes) -> bytearray:
    """The same with the last byte changed, which every checksum detects."""
    return bytearray(data[:-1] + bytes([data[-1] ^ 1]))


def fetch(data: bytearray) -> object:
    partition = messages.FetchResponse.PartitionData(partition_index=0, records=memoryview(data))
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    return protocol.fetch_to_columns(messages.FetchResponse(responses=[topic]))


FAULTS: dict[str, tuple[bytes, Callable[[bytearray], object]]] = {
    "decode": (DATA, kc.decode),
    "decode in threads": (DATA * 9, lambda data: kc.decode(data, threads=2)),
    "iter_columns": (DATA, lambda data: list(kc.iter_columns(data))),
    "iter_records": (DATA, lambda data: list(kc.iter_records(data))),
    "fetch_to_columns": (DATA, fetch),
    "kafka07.decode": (OLD, kafka07.decode),
    "kafka07.iter_columns": (OLD, lambda data: list(kafka07.iter_columns(data))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_exception_that_is_kept_does_not_keep_the_bytes(name: str) -> None:
    good, call = FAULTS[name]
    data = damaged(good)
    with pytest.raises(kc.CrcMismatch) as caught:
        call(data)
    if name == "fetch_to_columns":  # the response itself holds a view, which the traceback keeps
        caught.value.with_traceback(None)
        del caught
    data.append(0)


FAULT_IN_A_CYCLE = """
import gc
from tests.unit.test_buffers import FAULTS, damaged

def fault(name):
    good, call = FAULTS[name]
    view = memoryview(damaged(good))
    try:
        call(view)
    except ValueError as error:
        kept = error  # in a cycle with the frame, whose locals have the view

gc.disable()
fault({name!r})
gc.collect()
"""


@pytest.mark.parametrize("name", FAULTS)
def test_the_collector_survives_a_fault_in_a_cycle(name: str) -> None:
    run(FAULT_IN_A_CYCLE.format(name=name))


HOLDER_IN_A_CYCLE = """
import gc
from kafkacodec.log.segments import _resync
from tests.unit.test_buffers import DATA, decoder, decoder07

class Node: pass

gc.disable()
for make in (decoder, decoder07, _resync.Resync):
    node = Node()
    node.view = memoryview(bytearray(DATA))
    node.holder = make(node.view)
    node.self = node
    del node
    gc.collect()
"""


def decoder(data: object) -> Decoder:
    return Decoder(
        data,  # type: ignore[arg-type]
        wanted=(1 << len(record_columns())) - 1,
        verify_crc=True,
        include_control=False,
        start_offset=0,
        end_offset=1 << 62,
        limit=1 << 20,
    )


def decoder07(data: object) -> Kafka07Decoder:
    return Kafka07Decoder(data, wanted=3, verify_crc=True, deep=True, initial_offset=0, limit=1 << 20)  # type: ignore[arg-type]


def test_the_collector_survives_what_holds_a_buffer() -> None:
    run(HOLDER_IN_A_CYCLE)


@pytest.mark.parametrize("make", [decoder, decoder07, Resync])
def test_a_holder_gives_its_bytes_back(make: Callable[[object], object]) -> None:
    data = bytearray(DATA)
    held = make(data)
    with pytest.raises(BufferError):
        data.append(0)
    del held
    data.append(0)


@pytest.mark.parametrize("make", [decoder, decoder07])
def test_a_closed_decoder_reads_nothing(make: Callable[[object], Decoder]) -> None:
    data = bytearray(DATA)
    with make(data) as closed:
        pass
    data.append(0)
    closed.close()
    for call in (lambda: closed.read(kc.RecordColumns, 1, 1), closed.skip):
        with pytest.raises(ValueError, match="closed"):
            call()


def run(code: str) -> None:
    """In a separate process, which must exit without an error."""
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")


def fetched(records: object) -> bytes:
    partition = messages.FetchResponse.PartitionData(records=records)
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    return messages.FetchResponse(responses=[topic]).encode(4)


TAKE_BYTES: dict[str, Callable[[Any], object]] = {
    "decode": kc.decode,
    "decode a view": lambda data: kc.decode(memoryview(data)),
    "scan": kc.scan,
    "crc32c": kc.crc32c,
    "murmur2": kc.murmur2,
    "decode_varint": kc.decode_varint,
    "partition": lambda data: kc.partition([data], 3),
    "a key": lambda data: kc.encode([(data, b"")]),
    "a value": lambda data: kc.encode([(b"", data)]),
    "a header": lambda data: kc.encode([kc.Record(0, 0, 0, b"", b"", (("name", data),))]),
    "kafka07.decode": kafka07.decode,
    "kafka07.encode_messages": lambda data: kafka07.encode_messages([data]),
    "a message": lambda data: messages.MetadataRequest.decode(data, 1),
    "a message with records": lambda data: messages.FetchResponse.decode(data, 4),
    "a message's bytes": lambda data: messages.SaslAuthenticateRequest(auth_bytes=data).encode(1),
    "a message's records": fetched,
    "a message's tags": lambda data: messages.MetadataRequest(unknown_tagged_fields={9: data}).encode(9),
    "frame_size": protocol.frame_size,
    "split_frames": protocol.split_frames,
    "decode_request": protocol.decode_request,
    "decode_request_header": headers.decode_request_header,
    "decode_response": lambda data: protocol.decode_response(data, 3, 1),
    "a connection's bytes": lambda data: protocol.Connection("broker").receive(data),
    "a connection's frame": lambda data: protocol.Connection("client").receive_frame(data),
    "kafka07.decode_request": kafka07.decode_request,
    "kafka07.decode_response": lambda data: kafka07.decode_response(data, kafka07.FetchRequest("t", 0, 0, 1)),
    "kafka07.FetchResponse": lambda data: kafka07.FetchResponse(0, data).encode(),
    "rewrite's calls": rewrite_frames.decode_request,
    "rewrite's replies": rewrite_frames.reply_id,
    "line.split_lines": split_lines,
    "sticky user data": consumer_protocol.decode_sticky_user_data,
    "a coordinator's record": lambda data: stored.decode_coordinator_record("group", data, None),
}
REFERENCES = [
    np.array([DATA], object),
    np.array([DATA] * 3000, object),
    np.zeros(3, [("number", "u1"), ("object", "O")]),
]


@pytest.mark.parametrize("name", TAKE_BYTES)
@pytest.mark.parametrize("references", REFERENCES, ids=["one", "many", "structured"])
def test_addresses_of_objects_are_no_bytes(name: str, references: Any) -> None:
    with pytest.raises((TypeError, kc.EncodeError)):
        TAKE_BYTES[name](references)


def test_fields_may_have_any_name() -> None:
    assert kc.crc32c(np.zeros(3, [("O", "u1")])) == kc.crc32c(bytes(3))
    assert kc.crc32c(np.zeros(1, "M8[s]")) == kc.crc32c(bytes(8))


def test_addresses_of_objects_are_not_sent() -> None:
    with kc.broker.serve(topics={"t": 1}) as broker, kc.client.Producer(broker.bootstrap_servers) as producer:
        for _ in range(2):  # the first record of a batch, and a later one
            for record in ({"value": REFERENCES[0]}, {"key": REFERENCES[0]}, {"headers": {"name": REFERENCES[0]}}):
                with pytest.raises(kc.EncodeError, match="ndarray is not bytes"):
                    producer.send("t", **record)
            producer.send("t", np.frombuffer(b"text", "u1"))
        producer.flush()
        assert broker.records("t")["value"].tolist() == [b"text"] * 2
