"""What no client can be without, in the live contests and in the same run: not a client, but the limit of one.

    python -m benchmarks.live_limits receive|write HOST:PORT TOPIC CODEC

prints what `live_clients` prints. "receive" asks with requests that are ready for the same answers as the consumer of
columns, receives them into the same memory, and checks the CRC-32C of their batches; "write" writes a ready request
again and again, after the CRC-32C of its batch, and receives the answers. With LZ4, its library does its part of the
work too, alone. `requests` and `requests_of_loop` are requests of one record that wait for their answers. `Kept` is
what `send` cannot be without: a method that keeps its arguments.
"""

from __future__ import annotations

import asyncio
import ctypes
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import lz4.block
import lz4.frame

import kafkacodec as kc
from benchmarks import broker_load, compiled
from benchmarks.live_clients import Stopwatch, key, some_value

RECEIVING, WRITING = "receive and check alone", "write and check alone"
OF_CLIENTS = {"consume": {RECEIVING: "receive"}, "produce": {WRITING: "write"}}
"""The limits of the contests of whole topics, and their names as arguments."""
KEEPING = "a method that keeps its arguments"
ONE_THREAD, ON_A_LOOP = "one thread, no client", "asyncio alone"
LIMITS = (RECEIVING, WRITING, KEEPING, ONE_THREAD, ON_A_LOOP)

RECORDS = 2_000_000
PARTITION_FETCH_BYTES = 8 << 20  # as the consumer asks for
BATCH_BYTES = 960 << 10  # as the producer makes them of tables
IN_FLIGHT = 5
_BLOCK_BYTES = 256 << 10
_SIZE_BYTES = 4
_BATCH_HEADER, _CHECKED = 61, 21  # bytes of a batch: its header; those before what its checksum is of


class Line:
    """A connection: a blocking socket, and memory for answers that is used again."""

    def __init__(self, server: str) -> None:
        host, port = server.split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._memory = memoryview(bytearray(PARTITION_FETCH_BYTES + (1 << 20)))

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def send(self, frame: bytes | bytearray) -> None:
        """Send a request."""
        self._socket.sendall(frame)

    def receive(self) -> memoryview:
        """The next answer, with its size. No other answer may follow it at once."""
        have = self._socket.recv_into(self._memory)
        while have < _SIZE_BYTES:
            have += self._received(self._memory[have:])
        end = _SIZE_BYTES + int.from_bytes(self._memory[:_SIZE_BYTES], "big")
        while have < end:
            have += self._received(self._memory[have:end])
        return self._memory[:end]

    def receive_next(self) -> memoryview:
        """The next answer, which others may follow."""
        for begin, end in ((0, _SIZE_BYTES), (_SIZE_BYTES, 0)):
            end = end or _SIZE_BYTES + int.from_bytes(self._memory[:_SIZE_BYTES], "big")
            while begin < end:
                begin += self._received(self._memory[begin:end])
        return self._memory[:end]

    def _received(self, room: memoryview) -> int:
        count = self._socket.recv_into(room, 0, socket.MSG_WAITALL)
        if not count:
            raise RuntimeError("the broker closed the connection")
        return count


@contextmanager
def line(server: str) -> Iterator[Line]:
    """A connection that is closed at the end."""
    made = Line(server)
    try:
        yield made
    finally:
        made.close()


@dataclass(frozen=True)
class Fetch:
    """A request; where the records are in its answer, where the contents of each batch that is
    compressed (librdkafka leaves small ones as they are), and how many records."""

    request: bytearray
    records: slice
    contents: list[slice]
    count: int


def fetches(made: Line, topic: str, count: int) -> Iterator[Fetch]:
    """The requests for a topic of at least so many records."""
    found = offset = 0
    while found < count:
        request = broker_load.fetch_frame(topic, offset, PARTITION_FETCH_BYTES)
        made.send(request)
        answer = made.receive()
        part = broker_load.fetched(answer, offset)
        first = len(answer) - len(part.records)  # they are the last field
        headers = kc.scan(part.records, verify_crc=False, on_error="stop")
        batches = zip(*(headers[name].tolist() for name in ("position", "size_in_bytes", "codec")), strict=True)
        contents = [slice(first + at + _BATCH_HEADER, first + at + size) for at, size, how in batches if how != "none"]
        records = int(headers["count"].sum())
        yield Fetch(request, slice(first, first + headers.consumed), contents, records)
        found += records
        offset = int(headers["last_offset"][-1]) + 1


def receive(server: str, topic: str, codec: str) -> None:
    """Receive a topic and check it."""
    with line(server) as made:
        asked = list(fetches(made, topic, RECORDS))
        watch = Stopwatch()
        for fetch in asked:
            made.send(fetch.request)
            answer = made.receive()
            if not kc.scan(answer[fetch.records], columns=["crc_ok"])["crc_ok"].all():
                raise RuntimeError("a batch has another checksum than its bytes")
            if codec == "lz4":
                for place in fetch.contents:
                    lz4.frame.decompress(answer[place])
        watch.stop(sum(fetch.count for fetch in asked))


def write(server: str, topic: str, codec: Any) -> None:
    """Write a batch many times, of as many bytes as the producer makes of tables."""
    values = [some_value() for _ in range(1000)]
    rows = [(key(n), values[n % 1000]) for n in range(BATCH_BYTES // 110)]
    plain, *_ = kc.iter_encoded(rows, batch_bytes=BATCH_BYTES)
    data, *_ = kc.iter_encoded(rows, batch_bytes=BATCH_BYTES, codec=codec)
    assert plain.num_records == data.num_records
    request, checked = broker_load.produce_frame(topic, data.data), memoryview(data.data)[_CHECKED:]
    compress, requests = compressing(plain.data[_BATCH_HEADER:]), RECORDS // data.num_records
    with broker_load.connected(server) as load:
        broker_load.make_topic(load, topic)
    with line(server) as made:
        waiting = deque[None]()
        watch = Stopwatch()
        for _ in range(requests):
            if codec == "lz4":
                compress()
            kc.crc32c(checked)
            made.send(request)
            waiting.append(None)
            if len(waiting) == IN_FLIGHT:
                answer = made.receive_next()
                waiting.pop()
        for _ in waiting:
            answer = made.receive_next()
        watch.stop(requests * data.num_records)
    broker_load.check_produced(answer)


def compressing(content: bytes) -> Callable[[], int]:
    """A function that compresses it with LZ4's library alone, and returns the number of bytes.

    As producers do, it makes blocks of 256 KiB. The result is in memory that was used before.
    """
    compress = ctypes.CDLL(lz4.block._block.__file__).LZ4_compress_default  # type: ignore[attr-defined, unused-ignore]
    given, room = ctypes.create_string_buffer(content), ctypes.create_string_buffer(2 * _BLOCK_BYTES)
    first = ctypes.addressof(given)
    blocks = [
        (ctypes.c_void_p(first + at), room, min(_BLOCK_BYTES, len(content) - at), len(room))
        for at in range(0, len(content), _BLOCK_BYTES)
    ]

    def work() -> int:
        return sum(compress(*block) for block in blocks) if given else 0  # which keeps the memory

    return work


def _of_one(topic: str) -> bytearray:
    """A request with one record."""
    return broker_load.produce_frame(topic, kc.encode([(None, some_value())]))


@contextmanager
def requests(server: str, topic: str) -> Iterator[Callable[[], None]]:
    """A function that sends a record and waits for the answer, in one thread."""
    with broker_load.connected(server) as load:
        broker_load.make_topic(load, topic)
    with line(server) as made:
        request = _of_one(topic)

        def ask() -> None:
            made.send(request)
            made.receive()

        made.send(request)
        broker_load.check_produced(made.receive())
        yield ask


class _Answers(asyncio.Protocol):
    """Answers on an event loop, each to the one request that waits."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._answer: asyncio.Future[bytes] | None = None
        self._have = b""

    def connection_made(self, transport: Any) -> None:
        """Keep the connection."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer."""
        self._have += data
        if len(self._have) >= _SIZE_BYTES + int.from_bytes(self._have[:_SIZE_BYTES], "big") and self._answer:
            self._answer.set_result(self._have)

    def ask(self, request: bytes | bytearray) -> Awaitable[bytes]:
        """Send a request; the future of its answer."""
        self._have, self._answer = b"", asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer


@asynccontextmanager
async def requests_of_loop(server: str, topic: str) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """A function that sends a record, and whose result is waited for, in the running event loop."""
    with broker_load.connected(server) as load:
        broker_load.make_topic(load, topic)
    host, port = server.split(":")
    transport, answers = await asyncio.get_running_loop().create_connection(_Answers, host, int(port))
    try:
        request = _of_one(topic)
        broker_load.check_produced(await answers.ask(request))
        yield lambda: answers.ask(request)
    finally:
        transport.close()
        await asyncio.sleep(0)  # it closes the socket


def keeper() -> Any:
    """An object with the methods `send`, which keeps its arguments, `add_done_callback`, as well, and `flush`."""
    return compiled.module("kept").Kept()


if __name__ == "__main__":
    _, work, server, topic, codec = sys.argv
    {"receive": receive, "write": write}[work](server, topic, codec)
