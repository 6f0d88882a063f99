"""Large messages past a transport."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest

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


def test_with_tls_the_transport_writes_everything():
    transport = Encrypted()
    PieceWriter(transport).write([b"some", memoryview(b" pieces")])
    assert transport.written == [b"some pieces"]
