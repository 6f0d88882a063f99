"""Peers that hang, lie or speak something else: one specific error within the time limit, and a closed connection."""

from __future__ import annotations

import asyncio
import re
import ssl
import tracemalloc
from typing import Any

import pytest

from kafkacodec import messages
from kafkacodec.client import aio
from kafkacodec.client.driver.network import Network
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import AuthenticationFailed, DeadlineExceeded, RemoteProtocolError
from kafkacodec.protocol import Connection, encode_response
from tests.certificates import Authority
from tests.patience import until

CALL_MS = 700
SETUP_MS = 300
# For what is to end at once: no busy machine takes so long.
PATIENT = {"socket_connection_setup_timeout_ms": 30_000, "request_timeout_ms": 30_000, "call_ms": 60_000}
SILENT = "no answer from broker|closed, since it did not answer in time"
ASKED = messages.MetadataRequest(topics=[])


class Peer:
    """A server on the loopback interface whose connections run `script(self, reader, writer)`.

    Attributes:
        connections: how many there were.
        closed: how many of them the client has closed, or the script.
    """

    def __init__(self, script, tls=None):
        self.script, self.tls = script, tls
        self.connections = self.closed = 0
        self.tasks = set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.tls)
        self.address = f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def serve(self, reader, writer):
        self.connections += 1
        self.tasks.add(asyncio.current_task())
        try:
            await self.script(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.closed += 1
            writer.close()

    async def all_closed(self):
        """Wait until the client has closed all connections; it has at once, and the script has to see it."""
        async with asyncio.timeout(30):
            while self.closed < self.connections:
                await asyncio.sleep(0.01)


async def until_closed(reader):
    """Wait for the client to close; what it sends is not answered."""
    while await reader.read(65536):
        pass


def sends(data, pause=0.0):
    """A script that sends bytes as soon as the client has sent some; then it waits for the end."""

    async def script(reader, writer):
        await reader.read(1)
        for piece in (data[i : i + 1] for i in range(len(data))) if pause else [data]:
            if writer.is_closing():  # uvloop then raises an error
                return
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        await until_closed(reader)

    return script


async def opened(reader, writer):
    """Answer ApiVersions; returns the broker's side and its next request."""
    connection = Connection("broker")
    while data := await reader.read(65536):
        for event in connection.receive(data):
            if event.api_key != 18:
                return connection, event
            writer.write(connection.send_response(event.correlation_id, connection.api_versions(event)))
    raise ConnectionError


def answers(make):
    """A script that opens the connection and sends ``make(event)`` to the first request."""

    async def script(reader, writer):
        _, event = await opened(reader, writer)
        writer.write(make(event))
        await until_closed(reader)

    return script


def metadata(event):
    return encode_response(messages.MetadataResponse(), event.version, event.correlation_id)


async def ask(address, call_ms=CALL_MS, **options):
    """The error of a call, and how long it took in ms; nothing may be left over or be reported by the loop."""
    loop, reports = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: reports.append(context))
    before = asyncio.all_tasks()
    settings = {"socket_connection_setup_timeout_ms": SETUP_MS, "request_timeout_ms": SETUP_MS, **options}
    network = Network(ClientSettings(bootstrap_servers=address, **settings))
    began = loop.time()
    try:
        with pytest.raises((AuthenticationFailed, DeadlineExceeded, RemoteProtocolError)) as caught:
            await network.call(ASKED, timeout_ms=call_ms)
        took = (loop.time() - began) * 1000
    finally:
        await network.close()
    await asyncio.sleep(0.02)
    left = {task for task in asyncio.all_tasks() - before if "kafkacodec" in repr(task.get_coro())}
    assert not left
    assert not reports
    return caught.value, took


async def refused(script, reason, kind=RemoteProtocolError, **options):
    """The client gives up at once, says why, and closes its one connection."""
    async with Peer(script) as peer:
        error, took = await ask(peer.address, **PATIENT, **options)
        assert type(error) is kind
        assert reason in str(error)
        assert peer.address in str(error)
        assert took < PATIENT["request_timeout_ms"]
        await peer.all_closed()
        assert peer.connections == 1


async def timed_out(script, reason, most, **options):
    """The client tries until its deadline, with a wait after each failure, and closes its connections."""
    async with Peer(script) as peer:
        error, took = await ask(peer.address, bootstrap_timeout_ms=600_000, **options)
        assert type(error) is DeadlineExceeded
        assert re.search(reason, str(error))
        assert took < CALL_MS + 10_000
        await peer.all_closed()
        assert peer.connections <= most


SASL = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "alice",
    "sasl_plain_password": "sesame",
}


# Before the connection is open


async def test_a_peer_that_says_more_than_the_versions():
    """The connection ends as soon as it is open, before it is used."""

    async def script(reader, writer):
        connection = Connection("broker")
        (event,) = connection.receive(await reader.read(65536))
        writer.write(connection.send_response(event.correlation_id, connection.api_versions(event)) + b"\0\0\0\4more")
        await until_closed(reader)

    await refused(script, "no request is pending")


@pytest.mark.parametrize("options", [{}, {"security_protocol": "SSL"}, SASL], ids=["plain", "tls", "sasl"])
async def test_a_peer_that_says_nothing(options):
    async def script(reader, writer):
        await until_closed(reader)

    await timed_out(script, f"connected, but no answer within {SETUP_MS} ms", 4, **options)


@pytest.mark.parametrize("options", [{}, {"security_protocol": "SSL"}, SASL], ids=["plain", "tls", "sasl"])
async def test_a_peer_that_closes_at_once(options):
    async def script(reader, writer):
        pass

    reason = "closed the connection during the TLS" if "SSL" in options.values() else "closed the connection without"
    await timed_out(script, reason, 40, **options)


async def test_a_peer_that_resets_the_connection():
    async def script(reader, writer):
        writer.transport.abort()

    await timed_out(script, "closed the connection without an answer", 40)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "the peer speaks HTTP: it is not a Kafka broker"),
        (bytes.fromhex("15030300020250"), "uses TLS: set security_protocol to 'SSL' or 'SASL_SSL'"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the peer speaks SSH"),
        (b"220 mail.example ESMTP\r\n", "exceeds the limit of 1048576"),
        (b"\xff" * 100, "negative frame size -1"),
        (b"\0\x20\0\0" + bytes(100), "a frame of 2097152 bytes exceeds the limit"),
        (bytes(4), "correlation_id: an int32 needs 4 bytes, 0 left"),
        (b"\0\0\0\4\0\0\0\7", "unexpected correlation id 7"),
        (b"\0\0\0\5\0\0\0\0\0", "byte"),
        (b"\0\0\0\x0a\0\0\0\0\0\0\x7f\xff\xff\xff", "api_keys"),
    ],
)
@pytest.mark.parametrize("options", [{}, SASL], ids=["plain", "sasl"])
async def test_a_peer_that_is_no_broker(data, reason, options):
    await refused(sends(data), reason, **options)


async def test_a_peer_that_does_not_speak_tls():
    reason = "does not use TLS: set security_protocol to 'PLAINTEXT' or 'SASL_PLAINTEXT'"
    await refused(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"), reason, AuthenticationFailed, security_protocol="SSL")


async def test_a_peer_that_sends_a_byte_at_a_time():
    frame = encode_response(messages.ApiVersionsResponse(), 0, 0)
    await timed_out(sends(frame, pause=0.1), f"connected, but no answer within {SETUP_MS} ms", 4)


async def test_a_peer_that_stops_within_a_frame():
    async def script(reader, writer):
        await reader.read(1)
        writer.write(b"\0\0\1\0" + bytes(100))
        await until_closed(reader)

    await timed_out(script, f"connected, but no answer within {SETUP_MS} ms", 4)


async def test_a_peer_that_refuses_every_version():
    async def script(reader, writer):
        for correlation_id in range(100):
            if not await reader.read(65536):
                return
            writer.write(encode_response(messages.ApiVersionsResponse(error_code=35), 0, correlation_id))

    await refused(script, "refused the ApiVersions request: UNSUPPORTED_VERSION")


async def test_a_peer_that_has_an_error_for_versions():
    refusal = encode_response(messages.ApiVersionsResponse(error_code=-1), 5, 0)
    await refused(sends(refusal), "refused the ApiVersions request: UNKNOWN_SERVER_ERROR")


async def test_two_answers_to_one_request():
    frame = encode_response(messages.ApiVersionsResponse(error_code=35), 0, 0)
    await refused(sends(frame + frame), "unexpected correlation id 0")


async def test_an_answer_to_nothing_right_after_the_opening():
    """In one piece with the last answer of the opening: the connection ends before it is handed over."""

    async def script(reader, writer):
        connection = Connection("broker")
        for event in connection.receive(await reader.read(65536)):
            answer = connection.send_response(event.correlation_id, connection.api_versions(event))
            writer.write(answer + answer)
        await until_closed(reader)

    await refused(script, "no request is pending")


@pytest.mark.parametrize(
    ("response", "kind", "reason"),
    [
        (messages.SaslHandshakeResponse(error_code=-1), RemoteProtocolError, "UNKNOWN_SERVER_ERROR"),
        (messages.SaslHandshakeResponse(error_code=33), AuthenticationFailed, "it has none"),
        (messages.SaslHandshakeResponse(error_code=34), AuthenticationFailed, "does not use SASL"),
    ],
)
async def test_a_refused_handshake(response, kind, reason):
    def make(event):
        return encode_response(response, event.version, event.correlation_id)

    await refused(answers(make), reason, kind, **SASL)


async def test_a_broker_that_hangs_in_sasl():
    async def script(reader, writer):
        connection, event = await opened(reader, writer)
        writer.write(connection.send_response(event.correlation_id, messages.SaslHandshakeResponse()))
        await until_closed(reader)

    await timed_out(script, f"connected, but no answer within {SETUP_MS} ms", 4, **SASL)


# Sessions that end


class Sessions:
    """Answers everything; sessions last `lifetime_ms`. Metadata waits `hold` seconds, a renewal waits for ever."""

    def __init__(self, lifetime_ms, hold=0.0, renews=True):
        self.lifetime_ms, self.hold, self.renews = lifetime_ms, hold, renews
        self.authenticated = 0

    async def __call__(self, reader, writer):
        connection = Connection("broker")
        while data := await reader.read(65536):
            for event in connection.receive(data):
                if event.api_key == 36:
                    self.authenticated += 1
                if self.authenticated > 1 and not self.renews:
                    return await until_closed(reader)
                if event.api_key == 3:
                    await asyncio.sleep(self.hold)
                writer.write(connection.send_response(event.correlation_id, self.answer(connection, event)))

    def answer(self, connection, event):
        if event.api_key == 18:
            return connection.api_versions(event)
        response: Any = messages.by_key(event.api_key)[1]()
        if event.api_key == 36:
            response.session_lifetime_ms = self.lifetime_ms
        return response


async def test_a_renewal_waits_for_earlier_answers():
    sessions = Sessions(600, hold=1.0)
    async with Peer(sessions) as peer:
        options = {**SASL, "socket_connection_setup_timeout_ms": SETUP_MS}
        network = Network(ClientSettings(bootstrap_servers=peer.address, **options))
        await network.call(messages.MetadataRequest(topics=[]), timeout_ms=5000)
        await until(lambda: sessions.authenticated >= 2)
        assert peer.connections == 1
        await network.close()


async def test_a_renewal_that_gets_no_answer_ends_the_connection():
    sessions = Sessions(600, renews=False)
    async with Peer(sessions) as peer:
        options = {**SASL, "socket_connection_setup_timeout_ms": SETUP_MS}
        network = Network(ClientSettings(bootstrap_servers=peer.address, **options))
        await network.call(messages.MetadataRequest(topics=[]), timeout_ms=5000)
        assert (peer.connections, peer.closed) == (1, 0)
        await asyncio.sleep(0.6)
        assert sessions.authenticated == 2
        async with asyncio.timeout(30):
            while not peer.closed:
                await asyncio.sleep(0.01)
        await network.close()


# After it is open


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda event: encode_response(messages.MetadataResponse(), 9, event.correlation_id + 1), "correlation id"),
        (lambda event: b"\x7f\xff\xff\xff" + bytes(10), "a frame of 2147483647 bytes exceeds the limit of 104857600"),
        (lambda event: b"\x80\0\0\0", "negative frame size"),
        (lambda event: bytes(4), "correlation_id: an int32 needs 4 bytes, 0 left"),
        (lambda event: b"HTTP/1.1 200 OK\r\n", "the peer speaks HTTP"),
        (lambda event: metadata(event)[:-1], None),
        (lambda event: (len(metadata(event)) - 4 - 3).to_bytes(4, "big") + metadata(event)[4:], "MetadataResponse"),
    ],
    ids=["correlation", "oversized", "negative", "empty", "http", "short", "cut"],
)
async def test_an_answer_that_is_none(make, reason):
    if reason is None:  # the frame is one byte short: it never ends
        await timed_out(answers(make), SILENT, 4)
    else:
        await refused(answers(make), reason)


async def test_bytes_after_the_last_field_of_an_answer_are_ignored():
    async def script(reader, writer):
        connection, kind = Connection("broker"), messages.MetadataResponse
        while data := await reader.read(65536):
            for event in connection.receive(data):
                response: Any = connection.api_versions(event)
                if event.api_key != 18:
                    broker = kind.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=9)
                    response = kind(brokers=[broker])
                frame = connection.send_response(event.correlation_id, response)
                writer.write((len(frame) - 4 + 3).to_bytes(4, "big") + frame[4:] + b"abc")

    async with Peer(script) as peer:
        network = Network(ClientSettings(bootstrap_servers=peer.address))
        assert (await network.call(ASKED, -1, timeout_ms=20_000)).brokers
        await network.close()


async def test_an_answer_to_nothing():
    async def script(reader, writer):
        await opened(reader, writer)
        writer.write(b"\0\0\0\4\xff\xff\xff\xff" * 3)
        await until_closed(reader)

    await refused(script, "unexpected correlation id -1")


async def test_an_answer_that_comes_byte_by_byte():
    async def script(reader, writer):
        _, event = await opened(reader, writer)
        for byte in metadata(event):
            if writer.is_closing():  # uvloop raises if a closed transport is written to
                return
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)
        await until_closed(reader)

    await timed_out(script, SILENT, 4)


async def test_a_broker_that_closes_within_a_frame():
    async def script(reader, writer):
        _, event = await opened(reader, writer)
        writer.write(metadata(event)[:-3])

    await timed_out(script, f"the broker closed the connection|{SILENT}", 10)  # the last try may have no time left


async def test_a_large_frame_that_does_not_come_takes_no_memory_for_each_try():
    """A size within the limit is allocated once, untouched, and given back."""

    async def script(reader, writer):
        await opened(reader, writer)
        writer.write((100 << 20).to_bytes(4, "big"))
        await until_closed(reader)

    tracemalloc.start()
    try:
        await timed_out(script, SILENT, 4)
        assert tracemalloc.get_traced_memory()[0] < 16 << 20
    finally:
        tracemalloc.stop()


async def test_a_handshake_that_stops(tmp_path):
    """TLS succeeds, and then nothing comes."""
    authority = Authority(tmp_path)
    own = authority.issue("broker", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)

    async def script(reader, writer):
        await until_closed(reader)

    async with Peer(script, context) as peer:
        options = {"security_protocol": "SSL", "ssl_cafile": str(authority.certificate)}
        error, _ = await ask(peer.address, **options)
        assert type(error) is DeadlineExceeded
        assert f"connected, but no answer within {SETUP_MS} ms" in str(error)
        await peer.all_closed()
        assert 1 <= peer.connections <= 4


# The faces


async def produces(address):
    async with aio.Producer(address) as producer:
        await (await producer.send("topic", b"value"))


async def consumes(address, **options):
    async with aio.Consumer("topic", bootstrap_servers=address, **options) as consumer:
        async for _ in consumer:
            pass


async def consumes_in_a_group(address):
    await consumes(address, group_id="group")


async def administers(address):
    async with aio.Admin(address) as admin:
        await admin.list_topics()


@pytest.mark.parametrize("use", [produces, consumes, consumes_in_a_group, administers])
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "the peer speaks HTTP: it is not a Kafka broker"),
        (bytes.fromhex("15030300020250"), "uses TLS: set security_protocol to 'SSL' or 'SASL_SSL'"),
    ],
    ids=["http", "tls"],
)
async def test_faces_say_at_once_that_the_peer_is_no_broker(use, data, reason):
    async with Peer(sends(data)) as peer, asyncio.timeout(60):
        with pytest.raises(RemoteProtocolError, match=reason):
            await use(peer.address)
        assert peer.connections <= 3


async def test_one_address_that_is_no_broker_among_others():
    async def script(reader, writer):
        connection, event = await opened(reader, writer)
        events = [event]
        while events:
            port = int(broker.address.partition(":")[2])
            kind = messages.MetadataResponse
            brokers = [kind.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)]
            for event in events:
                writer.write(connection.send_response(event.correlation_id, kind(brokers=brokers, controller_id=1)))
            events = connection.receive(await reader.read(65536))

    async with Peer(script) as broker, Peer(sends(b"HTTP/1.1 400 Bad Request\r\n")) as other:
        for _ in range(5):
            async with aio.Consumer(bootstrap_servers=[other.address, broker.address]) as consumer:
                await consumer.assign([("topic", 0)])
                while len(consumer._parts.network.cluster.brokers) != 1:  # a connection to the other one fails first
                    assert await consumer.getmany(0.1) == {}


async def test_a_broker_that_is_upgraded():
    """What 0.8.2 has is found out by probes; after an upgrade the same address has ApiVersions."""
    old, asked = True, []

    async def script(reader, writer):
        connection = Connection("broker")
        while data := await reader.read(65536):
            if data[6:8] == b"\x7f\xff":  # 0.8 does not check versions
                data = data[:6] + bytes(2) + data[8:]
            for event in connection.receive(data):
                asked.append((event.api_key, event.version))
                if old and event.api_key in (16, 18):
                    return
                response: Any = messages.by_key(event.api_key)[1]()
                if event.api_key == 18:
                    response = connection.api_versions(event)
                if event.api_key == 3:
                    response.brokers = [response.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)]
                writer.write(connection.send_response(event.correlation_id, response))
                if not old and event.version == 0:
                    return  # it is stopped, and started again in another release

    async with Peer(script) as peer:
        port = int(peer.address.partition(":")[2])
        network = Network(ClientSettings(bootstrap_servers=peer.address))
        await network.call(ASKED, timeout_ms=5000)
        assert [key for key, _ in asked[:4]] == [18, 18, 10, 3]
        assert asked[-1] == (3, 0)
        old = False
        for _ in range(3):
            await network.call(ASKED, timeout_ms=5000)
        assert asked[-1][1] > 9
        await network.close()


async def test_what_is_tried_again_is_logged_once(caplog):
    async def script(reader, writer):
        pass

    async with Peer(script) as peer:
        await ask(peer.address, bootstrap_timeout_ms=600_000)
        warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len(warnings) == 1
        assert f"broker {peer.address}: the broker closed the connection without an answer" in warnings[0]
