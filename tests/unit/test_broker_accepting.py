"""Listeners of the broker's host: what they bind, whom they refuse, and what they log about it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

import kafkacodec as kc
from kafkacodec.broker.host.host import Host
from kafkacodec.broker.host.limits import Limits
from kafkacodec.broker.host.runner import Runner
from kafkacodec.net.notes import Notes
from kafkacodec.net.tls import server_context
from tests.certificates import Authority
from tests.patience import until
from tests.unit.test_broker_host import Lines, Service, Store


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def listening(host="127.0.0.1", port=0, tls=None, limits=None):
    loop = asyncio.get_running_loop()
    running = Host(loop, limits)
    try:
        runner = Runner(Service(), Store(), loop)
        yield running, await running.listen("lines", runner, Lines, host, port, tls)
    finally:
        await running.stop()


async def begun(address):
    """A connection on which nothing is sent."""
    reader, writer = await asyncio.open_connection(*address)
    return reader, writer


async def is_refused(address):
    reader, writer = await begun(address)
    with suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(1), 30) == b""
    writer.close()


async def test_connections_in_a_handshake_count(authority, caplog):
    """They take files of the process, as others do, and clients may begin any number and end none."""
    tls = server_context(authority.issue("localhost", "localhost", "127.0.0.1").both)
    async with listening(tls=tls, limits=Limits(max_connections=2)) as (host, listener), AsyncExitStack() as kept:
        for _ in range(2):
            _, writer = await begun(listener.address)
            kept.callback(writer.close)
        await until(lambda: listener.load.connections == 2)
        assert host.traffic()[0] == 0
        await is_refused(listener.address)
        writer.close()
        await until(lambda: listener.load.connections == 1)
        trust = ssl.create_default_context(cafile=str(authority.certificate))
        reader, writer = await asyncio.open_connection(*listener.address, ssl=trust, server_hostname="localhost")
        kept.callback(writer.close)
        writer.write(b"echo x\n")
        assert await reader.readline() == b"x\n"
        assert host.traffic()[0] == 1
        assert listener.load.connections == 2
    assert listener.load.connections == 0
    assert "connection refused: there are already 2 connections" in caplog.text


async def test_why_a_handshake_failed_is_logged(authority, caplog):
    tls = server_context(authority.issue("localhost", "localhost").both)
    async with listening(tls=tls) as (_, listener):
        for data in (b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff", b"GET / HTTP/1.1\r\n\r\n"):
            reader, writer = await begun(listener.address)
            writer.write(data)
            with suppress(ConnectionError):
                while await reader.read(100):  # an alert
                    pass
            writer.close()
        await until(lambda: "lines: the client does not use TLS; closing its connection" in caplog.text)


async def test_refused_connections_are_one_warning(caplog):
    async with listening(limits=Limits(max_connections=0)) as (_, listener):
        for _ in range(5):
            await is_refused(listener.address)
    found = [record.levelno for record in caplog.records if "connection refused" in record.getMessage()]
    assert found == [logging.WARNING] + [logging.INFO] * 4


async def test_all_addresses_of_a_host_have_one_port(monkeypatch):
    both = [(socket.AF_INET6, ("::1", 0, 0, 0)), (socket.AF_INET, ("127.0.0.1", 0))]
    if not has_ipv6():
        pytest.skip("this machine has no IPv6")
    loop = asyncio.get_running_loop()

    async def found(host, port, **options):
        return [(family, socket.SOCK_STREAM, 6, "", address) for family, address in both]

    monkeypatch.setattr(loop, "getaddrinfo", found)  # not every machine has both for a name
    async with listening("localhost") as (_, listener):
        monkeypatch.undo()
        for host in ("::1", "127.0.0.1"):
            reader, writer = await asyncio.open_connection(host, listener.address[1])
            writer.write(b"echo x\n")
            assert await reader.readline() == b"x\n"
            writer.close()


def has_ipv6():
    with suppress(OSError), socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::1", 0))
        return True
    return False


def test_an_address_in_use_says_what_to_do():
    with kc.broker.serve() as kafka:
        url = kafka.listeners[0]
        with pytest.raises(OSError, match=r"cannot listen at 127\.0\.0\.1:\d+: address already in use; another process "
                           "listens there: choose another port, or port 0 for a free one") as raised:  # fmt: skip
            kc.broker.serve(listen=url)
    assert raised.value.errno == errno.EADDRINUSE


def test_an_address_of_another_machine_says_so():
    with pytest.raises(OSError, match=r"cannot listen at 192\.0\.2\.1:9092: .*; it is not an address of this machine"):
        kc.broker.serve(listen="kafka://192.0.2.1:9092")


async def test_without_files_the_host_waits_for_them(monkeypatch, caplog):
    """It is told once, and the connection is accepted as soon as there is a file for it."""
    async with listening() as (_, listener):
        monkeypatch.setattr("kafkacodec.broker.host.listener._PAUSE_SECONDS", 0.01)
        accept = socket.socket.accept
        tries = []

        def fails(sock):
            tries.append(sock)
            if len(tries) <= 3:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return accept(sock)

        monkeypatch.setattr(socket.socket, "accept", fails)
        reader, writer = await begun(listener.address)
        writer.write(b"echo x\n")
        assert await reader.readline() == b"x\n"
        writer.close()
    warned = [record for record in caplog.records if "lines: a connection could not be accepted" in record.getMessage()]
    assert [record.levelno for record in warned] == [logging.WARNING] + [logging.INFO] * 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "it begins as HTTP does (byte 0); closing its connection"),
        (b"\x16\x03\x01\x00\xc5\x01", "it begins as TLS does (byte 0); closing its connection"),
    ],
)
def test_what_speaks_another_protocol_is_told_apart(data, says, caplog):
    with kc.broker.serve() as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as one:
            one.sendall(data)
            assert one.recv(10) == b""
    assert says in caplog.text


def test_a_text_is_a_warning_once_a_minute_and_only_a_hundred_are(caplog):
    now = 0.0
    notes = Notes(lambda: now)
    levels = []
    with caplog.at_level(logging.INFO):
        for now, text in ((0.0, "a"), (59.0, "a"), (60.0, "a"), (60.0, "b")):  # noqa: B007  # the clock
            notes.say(text, "someone")
        levels = [record.levelname for record in caplog.records]
        assert levels == ["WARNING", "INFO", "WARNING", "WARNING"]
        assert caplog.records[0].getMessage() == "someone: a"
        caplog.clear()
        for number in range(200):
            notes.say(f"{number}")
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 98 + ["INFO"] * 102


def test_a_request_without_memory_for_it_ends_its_connection(monkeypatch, caplog):
    """The first bytes of a frame say how large it becomes."""

    def none(size):
        raise MemoryError

    with kc.broker.serve() as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as one:
            monkeypatch.setattr("kafkacodec.net.frames.fresh", none)
            one.sendall((100 << 20).to_bytes(4, "big"))
            assert one.recv(10) == b""
        monkeypatch.undo()
    found = [record for record in caplog.records if "there is no memory for a request" in record.getMessage()]
    assert len(found) == 1
    assert not found[0].exc_info
