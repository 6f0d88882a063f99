"""Receiving large messages: into which memory, and the rest of them past a loop."""

from __future__ import annotations

import asyncio
import os
import re
import select
import socket
import threading
from contextlib import closing, suppress
from itertools import islice

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.net import receiving
from kafkacodec.net._receiving import receive_soon
from kafkacodec.net.frames import FrameBuffers, FrameReader
from kafkacodec.net.loop import LoopThread, is_private
from tests.patience import SOON

MIB = 1 << 20


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def test_what_has_come_is_received_and_no_more_than_the_room(pair):
    ours, theirs = pair
    theirs.sendall(b"abcdef")
    room = bytearray(10)
    assert receive_soon(ours.fileno(), memoryview(room)[:4]) == 4
    assert receive_soon(ours.fileno(), room) == 2
    assert bytes(room) == b"ef" + b"cd" + bytes(6)


def test_pieces_are_waited_for(pair):
    ours, theirs = pair
    data, found = os.urandom(3 * MIB), bytearray()
    sending = threading.Thread(target=theirs.sendall, args=(data,), daemon=True)
    sending.start()
    while len(found) < len(data):
        room = bytearray(len(data))
        found += room[: receive_soon(ours.fileno(), room)]
    sending.join(SOON)
    assert bytes(found) == data


def test_a_pause_and_the_end_are_left_to_the_loop(pair):
    ours, theirs = pair
    room = bytearray(10)
    assert receive_soon(ours.fileno(), room) == 0
    theirs.sendall(b"last")
    theirs.close()
    assert receive_soon(ours.fileno(), room) == 4
    assert receive_soon(ours.fileno(), room) == 0


def test_endless_data_comes_back_to_the_loop(pair):
    ours, theirs = pair
    over = threading.Event()

    def send():
        with suppress(OSError):  # the other one is closed
            while not over.is_set():
                theirs.sendall(bytes(1024))

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    room = bytearray(256 * MIB)
    assert 0 < receive_soon(ours.fileno(), room) < len(room)
    over.set()
    ours.close()
    sending.join(SOON)
    assert not sending.is_alive()


def test_a_broken_connection_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        ours.setblocking(False)
        ours.sendall(b"not read")
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        theirs.close()
        assert select.select([ours], [], [], SOON)[0]
        with pytest.raises(ConnectionResetError):
            receive_soon(ours.fileno(), bytearray(10))
    with pytest.raises(OSError, match="Bad file descriptor"):
        receive_soon(-1, bytearray(10))
    with pytest.raises(BufferError):
        receive_soon(0, b"constant")


@pytest.mark.skipif(not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="no huge pages")
def test_memory_of_large_frames_is_of_huge_pages():
    memory = FrameBuffers().take(16 * MIB)
    middle, flags, inside = np.frombuffer(memory, np.uint8).ctypes.data + 8 * MIB, "", False
    with open("/proc/self/smaps") as maps:
        for line in maps:
            if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                inside = int(found[1], 16) <= middle < int(found[2], 16)
            elif inside and line.startswith("VmFlags:"):
                flags = line
    assert "hg" in flags.split()


def test_readers_know_what_is_missing():
    reader, frame = FrameReader(FrameBuffers(), 64 * MIB), (3 * MIB).to_bytes(4, "big") + bytes(3 * MIB)
    at = frames = 0
    assert reader.missing == 0
    while at < len(frame):
        room = reader.buffer()
        count = min(len(room), 100_000)
        room[:count] = frame[at : at + count]
        at += count
        frames += len(reader.received(count))
        assert reader.missing == len(frame) - at
    assert frames == 1


def test_only_loops_of_threads_are_private():
    with closing(LoopThread("test")) as thread:
        assert is_private(thread.loop)
    with closing(asyncio.new_event_loop()) as loop:
        assert not is_private(loop)


@pytest.fixture
def received(monkeypatch):
    """The numbers of bytes that were received past loops."""
    counts = []

    def noted(fd, room):
        counts.append(receive_soon(fd, room))
        return counts[-1]

    monkeypatch.setattr(receiving, "receive_soon", noted)
    return counts


VALUE = os.urandom(MIB // 2)


@pytest.fixture
def broker():
    with kc.broker.serve(topics=["t"]) as served:
        with kc.client.Producer(served.bootstrap_servers) as producer:
            for _ in range(8):
                producer.send("t", VALUE)
        yield served


def test_blocking_consumers_receive_most_of_an_answer_so(broker, received):
    with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        found = [record.value for record in islice(consumer, 8)]
    assert found == [VALUE] * 8
    assert sum(received) > 0


async def test_consumers_on_a_loop_of_the_application_do_not_wait(broker, received):
    options = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
    async with kc.client.aio.Consumer(**options) as consumer:
        await consumer.assign([("t", 0)])
        found = []
        async for record in consumer:
            found.append(record.value)
            if len(found) == 8:
                break
    assert found == [VALUE] * 8
    assert received == []


def test_a_connection_that_breaks_within_an_answer_is_made_again(broker, monkeypatch):
    broken = []

    def breaks(fd, room):
        if broken:
            return receive_soon(fd, room)
        broken.append(fd)
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(receiving, "receive_soon", breaks)
    with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        found = [record.value for record in islice(consumer, 8)]
    assert found == [VALUE] * 8
    assert len(broken) == 1
