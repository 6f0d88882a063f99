"""Errors of connections name options in the words of their user: of Python, of a configuration, of the command."""

from __future__ import annotations

import asyncio

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import run
from kafkacodec.errors import ConnectionFailed, KafkaCodecError
from kafkacodec.net.tls import server_context
from tests.certificates import Authority

LIMITS = {"bootstrap_timeout_ms": 200, "default_api_timeout_ms": 5000}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority):
    own = authority.issue("localhost", "127.0.0.1", "localhost")
    tls = server_context(own.certificate, own.key)
    with kc.broker.serve(listen=["kafka://127.0.0.1:0", "kafka+tls://127.0.0.1:0"], tls=tls, topics=["t"]) as broker:
        yield [listener.partition("://")[2] for listener in broker.listeners]


CASES = [
    (0, "SSL", "security_protocol", "may not use TLS ({} 'PLAINTEXT' or 'SASL_PLAINTEXT')"),
    (1, "PLAINTEXT", "security_protocol", "uses another {}"),
    (1, "SSL", "ssl_cafile", "name its certificate in {}"),
]
WORDS = {"security_protocol": "security.protocol", "ssl_cafile": "ssl.ca.location"}


@pytest.mark.parametrize(("listener", "protocol", "option", "text"), CASES)
class TestWords:
    def test_python(self, broker, listener, protocol, option, text):
        with (
            kc.client.Admin(broker[listener], security_protocol=protocol, **LIMITS) as admin,
            pytest.raises(ConnectionFailed) as caught,
        ):
            admin.list_topics()
        assert text.format(option) in str(caught.value)
        assert WORDS[option] not in str(caught.value)

    @pytest.mark.parametrize("kind", ["Admin", "Consumer", "Producer", "ShareConsumer"])
    def test_a_configuration(self, broker, listener, protocol, option, text, kind):
        config = {"bootstrap.servers": broker[listener], "security.protocol": protocol, "bootstrap.timeout.ms": "200"}
        config |= {"max.block.ms": 1000} if kind == "Producer" else {"default.api.timeout.ms": 5000}
        config |= {"group.id": "g"} if kind == "ShareConsumer" else {}
        with getattr(kc.client, kind).from_config(config) as client, pytest.raises(KafkaCodecError) as caught:
            use(client, kind)
        assert text.format(WORDS[option]) in str(caught.value)
        assert option not in str(caught.value)

    async def test_a_configuration_in_an_event_loop(self, broker, listener, protocol, option, text):
        config = {"bootstrap.servers": broker[listener], "security.protocol": protocol, "bootstrap.timeout.ms": "200"}
        async with kc.client.aio.Consumer.from_config(config) as consumer:
            with pytest.raises(ConnectionFailed) as caught:
                await asyncio.wait_for(consumer.partitions_for("t"), 20)
        assert text.format(WORDS[option]) in str(caught.value)

    @pytest.mark.parametrize("command", [["topics"], ["consume", "t", "-e"], ["produce", "t"]])
    def test_the_command(self, broker, listener, protocol, option, text, command, capsys):
        options = ["-X", f"security.protocol={protocol}", "-X", "bootstrap.timeout.ms=200"]
        if command[0] == "produce":
            command = [*command, "--format", "lines", __file__]
        assert run([*command, "-b", broker[listener], *options]) == 1
        err = capsys.readouterr().err
        assert text.format(WORDS[option]) in err
        assert option not in err


def use(client, kind):
    if kind == "Admin":
        client.list_topics()
    elif kind == "Consumer":
        client.partitions_for("t")
    elif kind == "Producer":
        client.send("t", b"value").result()
    else:
        client.subscribe(["t"])
        client.getmany(timeout=2)
