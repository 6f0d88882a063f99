"""Sockets wake the event loop for large frames when much of them has come."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.net import low_water
from kafkacodec.net.frames import FrameBuffers, FrameReader
from kafkacodec.net.low_water import LowWater
from tests.patience import SOON

KIB, MIB = 1 << 10, 1 << 20
needs_linux = pytest.mark.skipif(not low_water._is_safe(), reason="needs Linux 5.10")


class Transport:
    """What a loop gives its protocols; `told` are the least numbers of bytes, in order."""

    def __init__(self, own: Any = None, tls: object = None) -> None:
        self.told: list[int] = []
        self._info = {"socket": own or SimpleNamespace(setsockopt=self._set), "ssl_object": tls}

    def _set(self, level: int, option: int, value: int) -> None:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        self.told.append(value)

    def get_extra_info(self, name: str) -> object:
        return self._info[name]


@pytest.fixture
def safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_water, "_is_safe", lambda: True)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        own = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    with own, peer:
        own.setblocking(False)
        peer.setblocking(False)
        yield own, peer


def is_readable(own: socket.socket, seconds: float = 0) -> bool:
    return bool(select.select([own], [], [], seconds)[0])


def test_large_frames_wake_seldom_and_small_ones_at_once(safe: None) -> None:
    transport = Transport()
    water = LowWater(transport)
    for missing in (0, 100, 5 * MIB, 4 * MIB, 900 * KIB, 256 * KIB, 256 * KIB - 1, 10, 0, 100 * KIB, 0, 2 * MIB, 0):
        water.expect(missing)
    assert transport.told == [MIB, 900 * KIB, 256 * KIB, 1, MIB, 1]


def test_never_more_than_what_comes_is_waited_for(safe: None) -> None:
    transport, reader = Transport(), FrameReader(FrameBuffers(), 64 * MIB)
    water, frame, at, frames = LowWater(transport), (3 * MIB).to_bytes(4, "big") + bytes(3 * MIB), 0, 0
    while at < len(frame):
        room = reader.buffer()
        count = min(len(room), 100_000)
        room[:count] = frame[at : at + count]
        at += count
        frames += len(reader.received(count))
        assert reader.missing == len(frame) - at
        water.expect(reader.missing)
        assert transport.told[-1] <= max(len(frame) - at, 1)
    assert frames == 1
    assert transport.told[0] == MIB
    assert transport.told[-1] == 1


def test_with_tls_and_on_other_systems_every_byte_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_water, "_is_safe", lambda: True)
    with_tls = Transport(tls=object())
    LowWater(with_tls).expect(5 * MIB)
    monkeypatch.setattr(low_water, "_is_safe", lambda: False)
    elsewhere = Transport()
    LowWater(elsewhere).expect(5 * MIB)
    assert with_tls.told == elsewhere.told == []


@pytest.mark.parametrize(
    ("system", "release", "safe"),
    [
        ("linux", "6.18.44-fc-v669", True),
        ("linux", "5.10.0-28-amd64", True),
        ("linux", "5.9.16", False),
        ("linux", "4.4.0-19041-Microsoft", False),
        ("linux", "unknown", False),
        ("darwin", "23.1.0", False),
    ],
)
def test_only_systems_that_wake_in_time_are_used(
    system: str, release: str, safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert low_water._is_safe() is safe


@pytest.mark.parametrize("problem", [OSError("closed"), TypeError("not supported")])
def test_sockets_without_the_option_are_left_alone(problem: Exception, safe: None) -> None:
    asked: list[int] = []

    def refuse(_level: int, _option: int, value: int) -> None:
        asked.append(value)
        raise problem

    water = LowWater(Transport(SimpleNamespace(setsockopt=refuse)))
    for missing in (5 * MIB, 0, 5 * MIB):
        water.expect(missing)
    assert asked == [MIB]


@needs_linux
def test_a_socket_wakes_at_the_mark_and_at_the_end(pair: tuple[socket.socket, socket.socket]) -> None:
    own, peer = pair
    water = LowWater(Transport(own))
    water.expect(300 * KIB)
    peer.setblocking(True)
    peer.sendall(bytes(200 * KIB))
    assert not is_readable(own, 0.05)
    peer.sendall(bytes(100 * KIB))
    assert is_readable(own, SOON)
    assert len(own.recv(MIB)) == 300 * KIB
    peer.sendall(b"some")
    assert not is_readable(own)
    water.expect(4)
    assert is_readable(own, SOON)
    water.expect(5 * MIB)
    peer.close()
    assert is_readable(own, SOON)


@needs_linux
def test_a_socket_wakes_without_room_for_as_much(pair: tuple[socket.socket, socket.socket]) -> None:
    own, peer = pair
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * KIB)
    LowWater(Transport(own)).expect(5 * MIB)
    left = 5 * MIB
    while left:
        if select.select([], [peer], [], 0)[1]:
            left -= peer.send(bytes(min(left, 64 * KIB)))
        elif is_readable(own, SOON):
            own.recv(MIB)
        else:
            pytest.fail(f"{left} bytes are stuck")


def test_consumers_tell_what_is_still_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    expected: list[int] = []
    expect = LowWater.expect

    def noted(water: LowWater, missing: int) -> None:
        expected.append(missing)
        expect(water, missing)

    monkeypatch.setattr(LowWater, "expect", noted)
    value = os.urandom(MIB // 2)
    with kc.broker.serve(topics=["t"]) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            for _ in range(8):
                producer.send("t", value)
        with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            found = [record.value for record in islice(consumer, 8)]
    assert found == [value] * 8
    assert max(expected) > MIB
    assert expected[-1] == 0
