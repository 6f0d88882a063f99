"""Host names with several addresses on the loopback interface: living, refused, without an answer, silent."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from kafkacodec import messages
from kafkacodec.client import KafkaConnection
from kafkacodec.client.core.metadata import BrokerAddress
from kafkacodec.client.driver import dialing
from kafkacodec.client.driver.connecting import Connector
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import ConnectionFailed
from kafkacodec.protocol import Connection
from tests.certificates import Authority
from tests.patience import until

NAME = "some.name"
LIVING, DEAD, REFUSED, SILENT = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"
LIMIT_MS = 1000


class Host:
    """One port: a broker at `LIVING`, nothing at `REFUSED`, at `DEAD` packets are dropped, `SILENT` says nothing."""

    def __init__(self, tls=None):
        self.tls, self.tasks = tls, set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, LIVING, 0, ssl=self.tls)
        self.port = self.server.sockets[0].getsockname()[1]
        self.kept = ExitStack()
        dead = self.kept.enter_context(socket.create_server((DEAD, self.port), backlog=0))
        for _ in range(3):  # the backlog is full: the kernel drops what wants to connect
            fill = self.kept.enter_context(socket.socket())
            fill.setblocking(False)
            fill.connect_ex(dead.getsockname())
        self.kept.enter_context(socket.create_server((SILENT, self.port)))
        return self

    async def __aexit__(self, *_):
        self.kept.close()
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.sleep(0.01)

    async def serve(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        connection = Connection("broker")
        try:
            while data := await reader.read(65536):
                for event in connection.receive(data):
                    writer.write(connection.send_response(event.correlation_id, self.answer(connection, event)))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    def answer(self, connection, event):
        if event.api_key == 18:
            return connection.api_versions(event)
        broker = messages.MetadataResponse.MetadataResponseBroker(node_id=1, host=NAME, port=self.port)
        return messages.MetadataResponse(brokers=[broker])


@pytest.fixture
def resolve(monkeypatch):
    """Have these addresses found for `NAME`."""
    original = socket.getaddrinfo

    def resolve(*addresses):
        def getaddrinfo(host, port, *args, flags=0, **options):
            if host != NAME or flags:
                return original(host, port, *args, flags=flags, **options)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return resolve


def open_files():
    return set(os.listdir("/dev/fd"))


@contextmanager
def client(**options):
    """A connector for `connect`."""
    settings = ClientSettings(bootstrap_servers=[f"{NAME}:1"], socket_connection_setup_timeout_ms=LIMIT_MS, **options)
    made = Connector(settings, lambda: asyncio.get_running_loop().time() * 1000)
    yield made
    made.close()


async def connect(connector, port):
    def ignore(*_):
        pass

    address = BrokerAddress(-1, NAME, port)
    return await connector.connect(address, accepted=ignore, answered=ignore, ended=ignore, resumed=ignore)


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """Of a server and of a client: the certificate is for the name."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("broker", NAME).both)
    return context, {"security_protocol": "SSL", "ssl_cafile": str(authority.certificate)}


ORDERS = [(DEAD, LIVING), (LIVING, DEAD), (REFUSED, LIVING), (DEAD, REFUSED, DEAD, LIVING), (REFUSED, DEAD, LIVING)]


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("addresses", ORDERS, ids=lambda found: "-".join(a[-1] for a in found))
async def test_one_address_that_lives_is_enough(tls, resolve, addresses, secure):
    async with Host(tls[0] if secure else None) as host:
        resolve(*addresses)
        before = open_files()
        with client(**tls[1] if secure else {}) as connector:
            link = await connect(connector, host.port)
            assert link.ready
            await until(lambda: len(open_files() - before) == 2)  # the broker's side
            link.close(ConnectionFailed("done"))
            await until(lambda: not open_files() - before)


async def test_each_address_says_why_it_failed(resolve):
    async with Host() as host:
        resolve(DEAD, SILENT, REFUSED)
        before = open_files()
        with client() as connector, pytest.raises(ConnectionFailed) as caught:
            await connect(connector, host.port)
        assert str(caught.value) == (
            f"broker {NAME}:{host.port}: connected, but no answer within {LIMIT_MS} ms "
            f"({DEAD}: no answer, {SILENT}: connected, but no answer, {REFUSED}: not tried)"
        )
        resolve(REFUSED, "127.0.0.5")
        with client() as connector, pytest.raises(ConnectionFailed) as caught:
            await connect(connector, host.port)
        assert str(caught.value) == (
            f"broker {NAME}:{host.port}: no connection ({REFUSED}: connection refused, 127.0.0.5: connection refused)"
        )
        resolve(REFUSED)
        with client() as connector, pytest.raises(ConnectionFailed, match=r": connection refused$"):
            await connect(connector, host.port)
        resolve()
        with client() as connector, pytest.raises(ConnectionFailed, match=r": the name has no address$"):
            await connect(connector, host.port)
        await until(lambda: not open_files() - before)


async def test_an_address_that_connects_and_says_nothing_is_tried_last_the_next_time(resolve):
    async with Host() as host:
        resolve(SILENT, LIVING)
        with client() as connector:
            with pytest.raises(ConnectionFailed, match=f"{SILENT}: connected, but no answer, {LIVING}: not tried"):
                await connect(connector, host.port)
            link = await connect(connector, host.port)
            link.close(ConnectionFailed("done"))


@pytest.mark.parametrize("port", [-1, 65536 + 9092])
async def test_a_port_that_cannot_be(port):
    with client() as connector, pytest.raises(ConnectionFailed, match=f"port {port} is not from 0 to 65535"):
        await connect(connector, port)


@pytest.mark.parametrize("secure", [False, True])
async def test_a_connection_given_up_at_any_step_leaves_nothing(monkeypatch, tls, resolve, secure):
    monkeypatch.setattr(dialing, "_NEXT_ADDRESS_SECONDS", 0.001)
    reports = []
    async with Host(tls[0] if secure else None) as host:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context))
        resolve(REFUSED, DEAD, LIVING)
        before, tasks = open_files(), asyncio.all_tasks()
        with client(**tls[1] if secure else {}) as connector:
            for steps in range(2000):
                task = asyncio.create_task(connect(connector, host.port))
                for _ in range(steps):
                    await asyncio.sleep(0)
                if task.done():
                    task.result().close(ConnectionFailed("done"))
                    break
                task.cancel()
                assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
        assert steps > 10
        await until(lambda: asyncio.all_tasks() - host.tasks == tasks)
        await until(lambda: not open_files() - before)
        assert not reports


async def test_the_blocking_face(resolve):
    resolve(DEAD, LIVING)

    def ask(port):
        with KafkaConnection(f"{NAME}:{port}") as connection:
            return connection.poll(5, messages.MetadataRequest(topics=[]))

    async with Host() as host:
        await asyncio.to_thread(ask, host.port)  # a loop may keep files for the next one
        before = open_files()
        (reply,) = await asyncio.to_thread(ask, host.port)
        assert reply.message.brokers[0].host == NAME
        await until(lambda: not open_files() - before)


def test_the_interpreter_ends_while_a_name_is_resolved():
    program = f"""
import socket, time
from kafkacodec import messages
from kafkacodec.client import KafkaConnection
original = socket.getaddrinfo
def slow(host, *args, flags=0, **options):
    if host == "{NAME}" and not flags:
        time.sleep(100)
    return original(host, *args, flags=flags, **options)
socket.getaddrinfo = slow
with KafkaConnection("{NAME}:9092", request_timeout_ms=100) as connection:
    print(connection.poll(5, messages.MetadataRequest())[0].error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"no answer from broker {NAME}:9092 within 100 ms\n"
    assert done.stderr == ""
