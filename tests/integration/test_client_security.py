"""TLS and each SASL mechanism against a real broker: they work, and what is wrong is said once and clearly."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import time

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.client.driver.network import Network
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, RemoteProtocolError
from kafkacodec.protocol.versions import highest_common
from tests.certificates import Authority
from tests.integration.kafka_jvm import free_port
from tests.integration.old_kafka import OldBroker
from tests.integration.secure_kafka import PASSWORDS, SecureBroker

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    made = SecureBroker(tmp_path_factory.mktemp("secure"))
    made.start()
    yield made
    made.kill()


def tls(broker, **options):
    return {"security_protocol": "SSL", "ssl_cafile": str(broker.authority.certificate), **options}


def sasl(mechanism, user="alice", password=None, **options):
    if mechanism == "OAUTHBEARER":
        credentials = {"sasl_oauth_token_provider": lambda: jws(user)}
    else:
        credentials = {"sasl_plain_username": user, "sasl_plain_password": password or PASSWORDS[user]}
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, **credentials, **options}


def jws(user="alice", seconds=3600):
    """An unsecured token, as Kafka's handler for tests takes it (KIP-255)."""
    now = time.time()
    parts = {"alg": "none"}, {"sub": user, "iat": now, "exp": now + seconds}
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


@contextlib.asynccontextmanager
async def connected(server, **options):
    network = Network(ClientSettings(bootstrap_servers=server, **options))
    try:
        yield network
    finally:
        await network.close()


async def produce_and_fetch(network, topic):
    """Write a record to a new topic and read it back."""
    creatable = messages.CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)

    def create_error(response):
        """Error 38: a broker that has just started does not count itself yet."""
        code = response.topics[0].error_code
        return 5 if code == 38 else code

    made = await network.call(
        messages.CreateTopicsRequest(topics=[creatable], timeout_ms=10_000), error_of=create_error
    )
    assert made.topics[0].error_code == 0, made

    def produce(versions):
        records = kc.encode([(b"key", topic.encode())], magic=2 if 3 in versions[0] else 1)
        data = messages.ProduceRequest.PartitionProduceData(index=0, records=records)
        written = messages.ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
        request = messages.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[written])
        return request, highest_common(0, versions, range(13))

    def fetch(versions):
        partition = messages.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        wanted = messages.FetchRequest.FetchTopic(topic=topic, partitions=[partition])
        return messages.FetchRequest(max_wait_ms=1000, min_bytes=1, topics=[wanted]), highest_common(
            1, versions, range(13)
        )

    def partition_error(response):
        return response.responses[0].partition_responses[0].error_code

    response = await network.call(produce, error_of=partition_error)
    assert partition_error(response) == 0
    response = await network.call(fetch)
    return [record.value for record in kc.iter_records(response.responses[0].partitions[0].records)]


async def check(server, topic, **options):
    async with connected(server, **options) as network:
        assert await produce_and_fetch(network, topic) == [topic.encode()]


@contextlib.asynccontextmanager
async def counted(server):
    """A way to the server that counts the connections: (host and port, the list of their times)."""
    times, tasks = [], set()

    async def copy(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader, writer):
        times.append(time.monotonic())
        host, port = server.split(":")
        behind = await asyncio.open_connection(host, int(port))
        tasks.update(asyncio.ensure_future(copy(*pair)) for pair in ((reader, behind[1]), (behind[0], writer)))

    proxy = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}", times
    finally:
        proxy.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def refused(server, caplog, secret=None, **options):
    """The error of a client that the broker, or it, refuses; checks that it tried once and keeps the secret."""
    caplog.set_level(logging.DEBUG)
    async with counted(server) as (address, times), connected(address, **options) as network:
        began = time.monotonic()
        with pytest.raises((AuthenticationFailed, RemoteProtocolError)) as caught:
            await network.call(messages.MetadataRequest(topics=[]), timeout_ms=60_000)
        assert time.monotonic() - began < 30
        assert len(times) == 1
    if secret is not None:
        shown = f"{caught.value!r} {caught.value.__cause__!r} {network.settings!r} {network!r} {caplog.text}"
        assert secret not in shown
        assert base64.b64encode(secret.encode()).decode() not in shown
    return caught.value


# TLS


async def test_tls(broker):
    await check(broker.at("TLS"), "tls", **tls(broker))
    await check(broker.at("TLS").replace("127.0.0.1", "localhost"), "tls-by-name", **tls(broker))


async def test_tls_with_a_client_certificate(broker):
    own = broker.authority.issue("client", password="the key's password")
    files = {"ssl_certfile": str(own.certificate), "ssl_keyfile": str(own.key)}
    await check(broker.at("MUTUAL"), "mutual", **tls(broker, ssl_password="the key's password", **files))


async def test_a_client_without_a_certificate_is_refused(broker, caplog):
    error = await refused(broker.at("MUTUAL"), caplog, **tls(broker))
    assert "the broker refused the client's certificate or requires one: see ssl_certfile" in str(error)


async def test_a_client_with_a_certificate_of_another_authority_is_refused(broker, caplog, tmp_path):
    own = Authority(tmp_path, "other").issue("client")
    options = tls(broker, ssl_certfile=str(own.certificate), ssl_keyfile=str(own.key))
    error = await refused(broker.at("MUTUAL"), caplog, **options)
    assert "the broker refused the client's certificate" in str(error)


@pytest.mark.parametrize(
    ("listener", "options", "reason"),
    [
        ("EXPIRED", {}, "the broker's certificate has expired"),
        ("ELSEWHERE", {}, "the broker's certificate is not valid for its host name"),
        ("TLS", {"ssl_cafile": None}, "signed by an unknown authority: name its certificate in ssl_cafile"),
    ],
)
async def test_certificates_that_are_not_accepted(broker, caplog, listener, options, reason):
    error = await refused(broker.at(listener), caplog, **tls(broker, **options))
    assert isinstance(error, AuthenticationFailed)
    assert reason in str(error)


async def test_the_host_name_is_not_checked_if_it_shall_not_be(broker):
    await check(broker.at("ELSEWHERE"), "elsewhere", **tls(broker, ssl_check_hostname=False))


async def test_a_plain_client_at_a_listener_with_tls(broker, caplog):
    error = await refused(broker.at("TLS"), caplog)
    assert "uses TLS: set security_protocol to 'SSL' or 'SASL_SSL'" in str(error)


async def test_a_tls_client_at_a_plain_listener(broker):
    async with counted(broker.server) as (address, times), connected(address, **tls(broker)) as network:
        with pytest.raises(ConnectionFailed, match="during the TLS handshake: its listener may not use TLS"):
            await network.call(messages.MetadataRequest(topics=[]), timeout_ms=60_000)
    assert len(times) <= 10  # 50 ms, doubled up to a second


# SASL


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("listener", ["SASL", "SASLTLS"])
async def test_sasl(broker, mechanism, listener):
    options = sasl(mechanism)
    if listener == "SASLTLS":
        options |= {"security_protocol": "SASL_SSL", "ssl_cafile": str(broker.authority.certificate)}
    await check(broker.at(listener), f"{listener}-{mechanism}", **options)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_passwords_that_other_systems_normalize(broker, mechanism):
    await check(broker.at("SASL"), f"bob-{mechanism}", **sasl(mechanism, "bob"))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", ["alice", "nobody"])
async def test_a_wrong_password(broker, caplog, mechanism, user):
    secret = "not the password"
    error = await refused(broker.at("SASL"), caplog, secret, **sasl(mechanism, user, secret))
    assert isinstance(error, AuthenticationFailed)
    assert f"the broker refused the authentication by {mechanism}: " in str(error)
    assert "(SASL_AUTHENTICATION_FAILED)" in str(error)


async def test_a_token_that_has_expired(broker, caplog):
    token = jws(seconds=-60)
    options = {**sasl("OAUTHBEARER"), "sasl_oauth_token_provider": lambda: (token, {"traceId": "7"})}
    error = await refused(broker.at("SASL"), caplog, token, **options)
    assert 'OAUTHBEARER: {"status":"invalid_token"}' in str(error)


async def test_a_token_from_a_coroutine(broker):
    async def provider():
        await asyncio.sleep(0.01)
        return jws(), {"traceId": "7"}

    await check(broker.at("SASL"), "coroutine", **{**sasl("OAUTHBEARER"), "sasl_oauth_token_provider": provider})


async def test_a_mechanism_that_the_broker_has_not(broker, caplog):
    error = await refused(broker.at("PLAINONLY"), caplog, PASSWORDS["alice"], **sasl("SCRAM-SHA-256"))
    assert "does not accept the SASL mechanism SCRAM-SHA-256; it has PLAIN" in str(error)


async def test_sasl_at_a_listener_without(broker, caplog):
    error = await refused(broker.server, caplog, PASSWORDS["alice"], **sasl("PLAIN"))
    assert isinstance(error, AuthenticationFailed)
    assert "listener does not use SASL" in str(error)


async def test_a_client_without_sasl_at_a_listener_with_it(broker):
    async with counted(broker.at("SASL")) as (address, times), connected(address) as network:
        with pytest.raises(ConnectionFailed, match="at the first request: its listener may need SASL"):
            await network.call(messages.MetadataRequest(topics=[]), timeout_ms=60_000)
    assert len(times) <= 10


async def test_a_refusal_is_repeated_without_asking_again_at_once(broker):
    async with counted(broker.at("SASL")) as (address, times):
        options = sasl("PLAIN", password="wrong", reconnect_backoff_max_ms=60_000)
        async with connected(address, **options) as network:
            for _ in range(20):
                with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
                    await network.call(messages.MetadataRequest(topics=[]), timeout_ms=30_000)
    assert len(times) == 1


# Sessions that end


async def test_sessions_are_renewed_on_the_same_connection(broker):
    tokens = []

    def provider():
        tokens.append(jws(seconds=60))
        return tokens[-1]

    async def busy(**options):
        async with connected(broker.at("BRIEF"), **options) as network:
            end, count = time.monotonic() + 4.2, 0
            while time.monotonic() < end or count <= 100:
                await network.call(messages.MetadataRequest(topics=[]), timeout_ms=30_000)
                count += 1
            return count, broken_off(network)

    async def idle(**options):
        async with connected(broker.at("BRIEF"), **options) as network:
            for _ in range(2):
                await network.call(messages.MetadataRequest(topics=[]), timeout_ms=30_000)
                await asyncio.sleep(2.1)
            await network.call(messages.MetadataRequest(topics=[]), timeout_ms=30_000)
            return broken_off(network)

    *counts, broken = await asyncio.gather(
        busy(**sasl("PLAIN")),
        busy(**sasl("SCRAM-SHA-256")),
        busy(**{**sasl("OAUTHBEARER"), "sasl_oauth_token_provider": provider}),
        idle(**sasl("SCRAM-SHA-512")),
    )
    assert all(count > 100 and not failed for count, failed in counts), counts
    assert broken == 0
    assert len(tokens) >= 4  # for two connections, again for each or the one that is left


def broken_off(network):
    """How many connections were broken off, or opened after those to the bootstrap address and the broker's own."""
    found = network.metrics.snapshot()
    return found.get("connections_failed", 0) + max(0, found["connections_opened"] - 2)


async def test_a_session_that_cannot_be_renewed_ends(broker):
    tokens = [jws()]
    options = {**sasl("OAUTHBEARER"), "sasl_oauth_token_provider": lambda: tokens.pop() if tokens else "x"}
    async with connected(broker.at("BRIEF"), **options) as network:
        await network.call(messages.MetadataRequest(topics=[]), timeout_ms=30_000)
        await asyncio.sleep(2.4)
        with pytest.raises(AuthenticationFailed, match="refused the authentication by OAUTHBEARER"):
            await network.call(messages.MetadataRequest(topics=[]), timeout_ms=30_000)


# Tokens without headers


@pytest.fixture(scope="module")
def old_broker(tmp_path_factory):
    """Version 0 of the handshake, after which tokens have no headers, and refusal is a closed connection."""
    directory = tmp_path_factory.mktemp("old")
    login = directory / "jaas.conf"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login.write_text(f'KafkaServer {{ {module} required user_alice="{PASSWORDS["alice"]}"; }};\n')
    port = free_port()
    made = OldBroker(
        directory,
        "0.10.2",
        **{"listeners": f"PLAINTEXT://127.0.0.1:{free_port()},SASL_PLAINTEXT://127.0.0.1:{port}"},
        **{"sasl.enabled.mechanisms": "PLAIN"},
    )
    made.server = f"127.0.0.1:{port}"
    with pytest.MonkeyPatch.context() as patch:
        options = f"-Djava.security.auth.login.config={login} -Dzookeeper.sasl.client=false"
        patch.setenv("JAVA_TOOL_OPTIONS", options)
        made.start()
    yield made
    made.kill()


async def test_tokens_without_headers(old_broker):
    await check(old_broker.server, "old", **sasl("PLAIN"))


async def test_a_wrong_password_at_an_old_broker(old_broker, caplog):
    error = await refused(old_broker.server, caplog, "not the password", **sasl("PLAIN", password="not the password"))
    assert "during the authentication by PLAIN, as brokers before 1.0 do when they refuse the credentials" in str(error)


async def test_a_mechanism_that_an_old_broker_has_not(old_broker, caplog):
    error = await refused(old_broker.server, caplog, **sasl("SCRAM-SHA-512"))
    assert "does not accept the SASL mechanism SCRAM-SHA-512; it has PLAIN" in str(error)
