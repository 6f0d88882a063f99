"""Large messages past a transport, and wake-ups for many bytes at once."""

from __future__ import annotations

import asyncio
import random
import socket
import sys

import pytest

from kafkacodec.net.readiness import Readiness
from kafkacodec.net.writing import PieceWriter


class Writing(asyncio.Protocol):
    """A protocol with a writer, which notes when all is written."""

    def connection_made(self, transport):
        transport.set_write_buffer_limits(high=1, low=0)
        self.writer = PieceWriter(transport)
        self.written = asyncio.Event()
        self.lost = asyncio.Event()

    def pause_writing(self):
        self.writer.paused = True

    def resume_writing(self):
        if self.writer.resumed():
            self.written.set()

    def connection_lost(self, exc):
        self.writer.drop()
        self.lost.set()


async def connected():
    """The writing side, and the socket of the other one."""
    ours, theirs = socket.socketpair()
    for one in (ours, theirs):
        one.setblocking(False)
    _, protocol = await asyncio.get_running_loop().create_connection(Writing, sock=ours)
    return protocol, theirs


async def read(theirs, size):
    found, loop = bytearray(), asyncio.get_running_loop()
    while len(found) < size:
        part = await loop.sock_recv(theirs, 1 << 20)
        assert part
        found += part
    return bytes(found)


@pytest.mark.parametrize("sizes", [[1], [10, 3_000_000, 1], [100_000] * 100, [0, 70_000, 0, 2_000_000]])
async def test_pieces_arrive_in_order_however_much_the_socket_takes(sizes):
    protocol, theirs = await connected()
    pieces = [random.randbytes(size) for size in sizes]
    with theirs:
        protocol.writer.write(pieces)
        waits = protocol.writer.paused
        assert waits == (sum(sizes) > 1_000_000)
        assert await read(theirs, sum(sizes)) == b"".join(pieces)
        if waits:
            await protocol.written.wait()
        protocol.writer.write([b"next"])
        assert not protocol.writer.paused
        assert await read(theirs, 4) == b"next"
        protocol.writer._transport.abort()
        await protocol.lost.wait()


async def test_what_is_written_while_much_is_left_follows_it():
    protocol, theirs = await connected()
    first, second = random.randbytes(3_000_000), random.randbytes(1000)
    with theirs:
        protocol.writer.write([memoryview(first)])
        assert protocol.writer.paused
        protocol.writer.write([second])
        assert await read(theirs, 3_001_000) == first + second
        protocol.writer._transport.abort()
        await protocol.lost.wait()


async def test_a_connection_that_is_broken_ends_once_and_keeps_nothing(caplog):
    protocol, theirs = await connected()
    theirs.close()
    protocol.writer.write([bytes(3_000_000)])
    await protocol.lost.wait()
    assert not protocol.writer._left
    protocol.writer.write([bytes(3_000_000)])
    assert not protocol.writer._left
    assert not caplog.records


class Encrypted:
    """A transport with TLS."""

    def __init__(self):
        self.written = []

    def get_extra_info(self, name):
        return object()

    def write(self, data):
        self.written.append(data)


def test_with_tls_the_transport_writes_everything_and_wakes_for_each_byte():
    transport = Encrypted()
    PieceWriter(transport).write([b"some", memoryview(b" pieces")])
    assert transport.written == [b"some pieces"]
    readiness = Readiness(transport)
    readiness.missing(1 << 20)
    assert readiness.least == 1


class Received(asyncio.BufferedProtocol):
    """Counts how often it is woken, until it has as many bytes as it wants."""

    def __init__(self, size):
        self.memory, self.have, self.size, self.wakes = bytearray(size), 0, size, 0
        self.whole = asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport
        self.readiness = Readiness(transport)
        self.readiness.missing(self.size)

    def get_buffer(self, sizehint):
        return memoryview(self.memory)[self.have :]

    def buffer_updated(self, nbytes):
        self.wakes += 1
        self.have += nbytes
        self.readiness.missing(self.size - self.have)
        if self.have == self.size:
            self.transport.pause_reading()
            self.whole.set()


@pytest.mark.skipif(sys.platform != "linux", reason="the option works on Linux")
async def test_few_wake_ups_for_many_bytes_that_come_one_after_the_other():
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    data = random.randbytes(2_000_000)
    with theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        _, protocol = await loop.create_connection(lambda: Received(len(data)), sock=ours)
        assert protocol.readiness.least > 100_000
        for at in range(0, len(data), 10_000):
            await loop.sock_sendall(theirs, data[at : at + 10_000])
            await asyncio.sleep(0)
        await protocol.whole.wait()
        assert protocol.memory == data
        assert protocol.wakes < 50  # of 200 parts
        assert protocol.readiness.least == 1
        option = protocol.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        assert option == 1
        protocol.transport.abort()


async def test_the_end_of_a_connection_is_told_whatever_is_missing():
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    ended = asyncio.Event()

    class Ending(Received):
        def connection_lost(self, exc):
            ended.set()

    ours.setblocking(False)
    await loop.create_connection(lambda: Ending(2_000_000), sock=ours)
    theirs.sendall(b"some")
    theirs.close()
    await ended.wait()
