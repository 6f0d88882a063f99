"""Requests to a broker over one connection: frames that are made once, several of them at a time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.messages import keys

_SIZE_BYTES = 4
_CORRELATION = slice(8, 12)  # after the size, the API key and the version
_SECONDS = 60
# Versions that name topics by their name, which every broker here knows.
_VERSIONS = {
    keys.PRODUCE: 8,
    keys.FETCH: 11,
    keys.METADATA: 7,
    keys.CREATE_TOPICS: 4,
    keys.API_VERSIONS: 0,
    keys.FIND_COORDINATOR: 4,
    keys.JOIN_GROUP: 5,
    keys.SYNC_GROUP: 3,
}


class Load:
    """One connection to a broker. Errors in answers raise RuntimeError."""

    def __init__(self, server: str) -> None:
        host, port = server.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer = bytearray(4 << 20)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, key: int, /, **fields: Any) -> Any:
        """Send one request; its answer."""
        self._send(frame(key, **fields), 1)
        return decoded(key, self._receive())

    def produce(self, topic: str, number: int, data: bytes) -> None:
        """Send a batch to a partition."""
        self._send(produce_frame(topic, data, number), 1)
        check_produced(self._receive())

    def repeat(self, data: bytearray, count: int, in_flight: int) -> None:
        """Send the same frame many times, and check the last answer's error; `data` is a Produce request."""
        for sent in range(count + in_flight):
            if sent >= in_flight:
                answer = self._receive()
            if sent < count:
                self._send(data, sent)
        check_produced(answer)

    def read(self, topic: str, total: int, answer_bytes: int) -> int:
        """Fetch from the beginning, one request at a time, until there were so many bytes of records; their number."""
        offset = read = 0
        while read < total:
            self._send(fetch_frame(topic, offset, answer_bytes), 1)
            part = fetched(self._receive(), offset)
            read += len(part.records)
            headers = kc.scan(part.records, columns=["last_offset"], verify_crc=False, on_error="stop")
            offset = int(headers["last_offset"][-1]) + 1
            if offset >= part.high_watermark:
                offset = 0
        return read

    def _send(self, data: bytearray, correlation: int) -> None:
        data[_CORRELATION] = correlation.to_bytes(4, "big")
        self._socket.sendall(data)

    def _receive(self) -> memoryview:
        view = memoryview(self._answer)
        self._fill(view[:_SIZE_BYTES])
        end = _SIZE_BYTES + int.from_bytes(view[:_SIZE_BYTES], "big")
        self._fill(view[_SIZE_BYTES:end])
        return view[:end]

    def _fill(self, view: memoryview) -> None:
        while view:
            got = self._socket.recv_into(view)
            if not got:
                raise RuntimeError("the broker closed the connection")
            view = view[got:]


@contextmanager
def connected(server: str) -> Iterator[Load]:
    """A connection that is closed at the end."""
    load = Load(server)
    try:
        yield load
    finally:
        load.close()


def frame(key: int, **fields: Any) -> bytearray:
    """A request as bytes."""
    version = _VERSIONS[key]
    message = messages.by_key(key)[0].from_dict(fields)
    return bytearray(protocol.encode_request(message, version, correlation_id=1))


def decoded(key: int, answer: bytes | memoryview) -> Any:
    """The answer to such a request."""
    return protocol.decode_response(answer, key, _VERSIONS[key])[1]


def check_produced(answer: bytes | memoryview) -> None:
    """Raise RuntimeError if the answer to a Produce request of one batch refuses it."""
    code = decoded(keys.PRODUCE, answer).responses[0].partition_responses[0].error_code
    if code:
        raise RuntimeError(f"producing: error {code}")


def fetch_frame(topic: str, offset: int, max_bytes: int) -> bytearray:
    """A Fetch request to partition 0, without a session."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    return frame(
        keys.FETCH,
        replica_id=-1,
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": [partition]}],
    )


def fetched(answer: memoryview, offset: int) -> Any:
    """The partition in the answer to it. Raises RuntimeError if it has no records."""
    part = decoded(keys.FETCH, answer).responses[0].partitions[0]
    if part.error_code or not part.records:
        raise RuntimeError(f"fetching at offset {offset} of {part.high_watermark}: error {part.error_code}")
    return part


def batch(records: int, value_bytes: int) -> bytes:
    """A batch of so many records, as a producer sends it."""
    values = [b"%0*d" % (value_bytes, n) for n in range(records)]
    return kc.encode([(None, value) for value in values], batch_bytes=2 << 20)


def produce_frame(topic: str, data: bytes, number: int = 0) -> bytearray:
    """A Produce request of one batch to a partition, acknowledged by all replicas."""
    partition = {"index": number, "records": data}
    return frame(keys.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=[{"name": topic, "partition_data": [partition]}])


def make_topic(load: Load, topic: str) -> None:
    """Make a topic of one partition, and wait until it has a leader."""
    offered = {api.api_key for api in load.ask(keys.API_VERSIONS).api_keys}
    if keys.CREATE_TOPICS in offered:
        made = {"name": topic, "num_partitions": 1, "replication_factor": 1}
        load.ask(keys.CREATE_TOPICS, topics=[made], timeout_ms=30_000)
    for _ in range(1000):
        found = load.ask(keys.METADATA, topics=[{"name": topic}], allow_auto_topic_creation=True).topics[0]
        if not found.error_code and found.partitions and found.partitions[0].leader_id >= 0:
            return
    raise RuntimeError(f"topic {topic} has no leader")
