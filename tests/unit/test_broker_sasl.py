"""Logging in to the embedded broker: conversations that Apache Kafka 4.4.0 answered; clients with each mechanism."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

import kafkacodec as kc
from kafkacodec import client
from kafkacodec.errors import (
    AuthenticationFailed,
    DelegationTokenAuthDisabledError,
    DelegationTokenNotFoundError,
    DelegationTokenOwnerMismatchError,
    DelegationTokenRequestNotAllowedError,
    KafkaCodecError,
)
from kafkacodec.net.tls import server_context
from tests import sasl_scripts
from tests.certificates import Authority
from tests.patience import SOON

AHEAD: list[float] = []  # by what the brokers' clocks were put forward
GOLDEN = json.loads(sasl_scripts.GOLDEN.read_text())


@pytest.fixture(scope="module")
def brokers():
    """One for each kind of listener that the conversations need."""
    settings = {
        "SASL": {},
        "BRIEF": {"connections.max.reauth.ms": 2000},
        "PLAINONLY": {"sasl.enabled.mechanisms": "PLAIN"},
    }
    AHEAD.clear()
    made = {
        name: kc.broker.serve(
            listen="kafka+sasl://127.0.0.1:0",
            users=sasl_scripts.PASSWORDS,
            tokens="unsecured",
            config={
                "connection.failed.authentication.delay.ms": 1,
                "delegation.token.secret.key": "of all brokers",
                **config,
            },
        )
        for name, config in settings.items()
    }
    yield made
    for broker in made.values():
        broker.stop()


def test_a_listener_at_which_nobody_can_log_in_says_so(caplog):
    with kc.broker.serve(listen="kafka+sasl://127.0.0.1:0"):
        assert "nobody can log in" in caplog.text
    caplog.clear()
    with kc.broker.serve(listen="kafka+sasl://127.0.0.1:0", tokens="unsecured"):
        assert not caplog.records
    with kc.broker.serve(listen="kafka://127.0.0.1:0", users={"alice": "secret"}):
        assert "users and tokens have no effect: nobody logs in at listeners without SASL" in caplog.text


@pytest.mark.parametrize("name", sasl_scripts.SCENARIOS)
def test_answers_of_kafka(brokers, name):
    def waits(seconds):
        AHEAD.append(seconds)
        for broker in brokers.values():
            broker.advance(seconds)

    def now():
        return time.time() + sum(AHEAD)

    listeners = {listener: broker.bootstrap_servers for listener, broker in brokers.items()}
    assert sasl_scripts.run(name, listeners, waits, now) == GOLDEN[name]


MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
PROTOCOLS = ["SASL_PLAINTEXT", "SASL_SSL"]


class Secured(NamedTuple):
    """A broker with listeners of all kinds, and the authority of its certificate."""

    broker: kc.broker.Broker
    authority: Authority

    def at(self, scheme):
        found = next(url for url in self.broker.listeners if url.startswith(f"{scheme}:"))
        return found.partition("://")[2]

    def options(self, protocol, mechanism, user="carol", password="c"):
        """For this library's clients."""
        found = {
            "bootstrap_servers": self.at("kafka+sasl+tls" if protocol == "SASL_SSL" else "kafka+sasl"),
            "security_protocol": protocol,
            "sasl_mechanism": mechanism,
        }
        if mechanism == "OAUTHBEARER":
            found["sasl_oauth_token_provider"] = lambda: sasl_scripts.jws(sub=user)
        else:
            found |= {"sasl_plain_username": user, "sasl_plain_password": password}
        return {**found, "ssl_cafile": str(self.authority.certificate)} if protocol == "SASL_SSL" else found


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    issued = authority.issue("broker", "127.0.0.1")
    listen = [
        "kafka://127.0.0.1:0",
        "kafka+tls://127.0.0.1:0",
        "kafka+sasl://127.0.0.1:0",
        "kafka+sasl+tls://127.0.0.1:0",
    ]
    with kc.broker.serve(
        listen=listen, users=sasl_scripts.PASSWORDS, tokens="unsecured", topics=["orders"],
        tls=server_context(issued.certificate, issued.key),
    ) as broker:  # fmt: skip
        yield Secured(broker, authority)


def combinations():
    return pytest.mark.parametrize(("protocol", "mechanism"), [(p, m) for p in PROTOCOLS for m in MECHANISMS])


@combinations()
def test_this_librarys_clients_log_in(secured, protocol, mechanism):
    with client.Producer(**secured.options(protocol, mechanism)) as producer:
        assert producer.send("orders", mechanism.encode()).result(SOON).topic == "orders"


@combinations()
def test_wrong_passwords_are_refused(secured, protocol, mechanism):
    options = secured.options(protocol, mechanism, password="wrong")
    if mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = lambda: sasl_scripts.jws(exp=1)
    with client.Admin(**options) as admin, pytest.raises(AuthenticationFailed):
        admin.list_topics()


@combinations()
def test_aiokafka_logs_in(secured, protocol, mechanism):
    import aiokafka.abc
    import aiokafka.helpers

    class Provider(aiokafka.abc.AbstractTokenProvider):
        async def token(self):
            return sasl_scripts.jws()

    async def main():
        options = secured.options(protocol, mechanism)
        options.pop("sasl_oauth_token_provider", None)
        if mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = Provider()
        cafile = options.pop("ssl_cafile", None)
        if cafile:
            options["ssl_context"] = aiokafka.helpers.create_ssl_context(cafile=cafile)
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            return await producer.send_and_wait("orders", b"one")

    assert asyncio.run(main()).topic == "orders"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@combinations()
def test_kafka_python_logs_in(secured, protocol, mechanism):
    import kafka
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):
        def token(self):
            return sasl_scripts.jws()

    options = secured.options(protocol, mechanism)
    if options.pop("sasl_oauth_token_provider", None):
        options["sasl_oauth_token_provider"] = Provider()
    producer = kafka.KafkaProducer(**options)
    try:
        assert producer.send("orders", b"one").get(60).topic == "orders"
    finally:
        producer.close()


@combinations()
def test_confluent_kafka_logs_in(secured, protocol, mechanism):
    import confluent_kafka

    options = secured.options(protocol, mechanism)
    config = {
        "bootstrap.servers": options["bootstrap_servers"],
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda _: (sasl_scripts.jws(), time.time() + 3600)
    else:
        config |= {"sasl.username": "carol", "sasl.password": "c"}
    if protocol == "SASL_SSL":
        config["ssl.ca.location"] = options["ssl_cafile"]
    told = []
    producer = confluent_kafka.Producer(config)
    producer.produce("orders", b"one", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(60) == 0
    assert told == [None]


def test_users_that_are_altered_log_in_at_once_and_after_a_restart(tmp_path):
    def set_password(broker, password):
        credential = client.ScramCredential("SCRAM-SHA-512", password)
        with client.Admin(broker.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials({"erin": credential})

    def listed(broker, password):
        server = broker.listeners[1].partition("://")[2]
        with client.Admin(
            server, security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_plain_username="erin",
            sasl_plain_password=password,
        ) as admin:  # fmt: skip
            return admin.list_topics()

    listen = ["kafka://127.0.0.1:0", "kafka+sasl://127.0.0.1:0"]
    with kc.broker.serve(tmp_path / "data", listen=listen) as broker:
        with pytest.raises(AuthenticationFailed):
            listed(broker, "one")
        set_password(broker, "one")
        listed(broker, "one")
    with kc.broker.serve(tmp_path / "data", listen=listen) as broker:
        listed(broker, "one")
        set_password(broker, "two")
        listed(broker, "two")
        with pytest.raises(AuthenticationFailed):
            listed(broker, "one")


def test_the_subject_of_a_certificate_is_the_user(tmp_path):
    authority = Authority(tmp_path)
    issued, mine = authority.issue("broker", "127.0.0.1"), authority.issue("mine, and yours", "client")
    context = server_context(issued.certificate, issued.key, authority.certificate)
    seen = []
    with kc.broker.serve(listen="kafka+tls://127.0.0.1:0", tls=context) as broker:
        options = {"security_protocol": "SSL", "ssl_cafile": str(authority.certificate)}
        broker.inject("Metadata", delay=0.001, times=None, when=lambda request: seen.append(request.peer.principal))
        with client.Admin(broker.bootstrap_servers, ssl_certfile=str(mine.both), **options) as admin:
            admin.list_topics()
        options["default_api_timeout_ms"] = 1000
        with client.Admin(broker.bootstrap_servers, **options) as admin, pytest.raises(KafkaCodecError):
            admin.list_topics()
    assert set(seen) == {r"User:CN=mine\, and yours"}


def test_a_function_checks_tokens():
    def check(token):
        if token != "good":
            raise ValueError("not good")
        return "alice", time.time() + 100

    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    with kc.broker.serve(listen="kafka+sasl://127.0.0.1:0", tokens=check) as broker:
        for token, fails in (("good", False), ("bad", True)):
            options["sasl_oauth_token_provider"] = lambda token=token: token
            with client.Admin(broker.bootstrap_servers, **options) as admin:
                if fails:
                    with pytest.raises(AuthenticationFailed):
                        admin.list_topics()
                else:
                    assert admin.list_topics() == {}


def test_why_a_client_is_not_let_in_is_logged(caplog):
    config = {"sasl.enabled.mechanisms": "PLAIN", "connection.failed.authentication.delay.ms": 0}
    with kc.broker.serve(listen="kafka+sasl://127.0.0.1:0", users={"alice": "secret"}, config=config) as kafka:
        wrong = {"sasl_plain_username": "alice", "sasl_plain_password": "wrong"}
        for options in ({"sasl_mechanism": "PLAIN", **wrong}, {"sasl_mechanism": "SCRAM-SHA-256", **wrong}):
            admin = client.Admin(kafka.bootstrap_servers, security_protocol="SASL_PLAINTEXT", **options)
            with admin, pytest.raises(AuthenticationFailed):
                admin.list_topics()
        with pytest.raises(KafkaCodecError), client.Admin(kafka.bootstrap_servers, request_timeout_ms=500) as admin:
            admin.list_topics()
    for reason in (
        "the log-in with PLAIN failed; closing its connection",
        "the client wants another SASL mechanism than is offered: PLAIN; closing its connection",
        "the client does not log in, which this listener requires; closing its connection",
    ):
        assert f"kafka+sasl://127.0.0.1:0: {reason}" in caplog.text


def test_a_certificate_without_its_key_says_where_the_key_goes(tmp_path):
    issued = Authority(tmp_path).issue("localhost", "localhost")
    with pytest.raises(ValueError, match=r"there is no private key in '.*localhost\.crt'; --tls-key takes the file"):
        server_context(issued.certificate)
    with pytest.raises(ValueError, match=r"there is no private key in '.*localhost\.crt'; --tls-key takes the file"):
        server_context(issued.certificate, issued.certificate)
    with pytest.raises(ValueError, match=r"there is no private key in '.*localhost\.crt'; ssl_keyfile takes the file"):
        client.Producer("h:1", security_protocol="SSL", ssl_certfile=str(issued.certificate))
    with pytest.raises(ValueError, match=r"certificate '.*', key '.*': not valid PEM text"):
        server_context(__file__)


def test_without_tokens_or_users_their_mechanisms_are_not_there():
    with kc.broker.serve(listen="kafka+sasl://127.0.0.1:0") as broker:
        talk = sasl_scripts.Talk({"SASL": broker.bootstrap_servers})
        assert sorted(talk.handshake("OAUTHBEARER").mechanisms) == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
        talk.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"listen": "kafka+sasl+tls://127.0.0.1:0"}, "needs tls="),
        ({"listen": "sasl://127.0.0.1:0"}, "is not kafka://HOST:PORT or kafka"),
        ({"users": {"a": ""}}, "users has names and passwords"),
        ({"users": {"a": "b\0"}}, "zero byte"),
        ({"users": ["alice"]}, "users must be passwords by name, as in {'alice': 'secret'}, not a list"),
        ({"tokens": "signed"}, "tokens must be 'unsecured' or a function"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kc.broker.serve(**arguments)


def test_listeners_that_others_reach_are_warned_of(caplog, tmp_path):
    issued = Authority(tmp_path).issue("broker", "127.0.0.1")
    context = server_context(issued.certificate, issued.key)
    for scheme, said in (("kafka+tls", "without SASL"), ("kafka+sasl", "without TLS"), ("kafka+sasl+tls", None)):
        caplog.clear()
        kc.broker.serve(listen=f"{scheme}://0.0.0.0:0", tls=context, users={"a": "b"}).stop()
        found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert (said is None and not found) or (said in found[0])


def test_the_command_takes_users_from_a_file(tmp_path):
    (tmp_path / "users").write_text("alice:with:colon\n\n")
    (tmp_path / "wrong").write_text("alice\n")
    command = ["serve", "--listen", "kafka+sasl://127.0.0.1:0", "--users"]
    arguments = [sys.executable, "-m", "kafkacodec.cli", *command]
    wrong = subprocess.run([*arguments, str(tmp_path / "wrong")], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "NAME:PASSWORD" in wrong.stderr
    assert "alice" not in wrong.stderr
    with subprocess.Popen([*arguments, str(tmp_path / "users")], stdout=subprocess.PIPE, text=True) as process:
        server = re.search(r"kafka\+sasl://([0-9.:]+)", process.stdout.readline())[1]
        options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice"}
        try:
            with client.Admin(server, sasl_plain_password="with:colon", **options) as admin:
                assert admin.list_topics() == {}
        finally:
            process.terminate()


def by_sasl(broker, user, password, **more):
    return {
        "bootstrap_servers": broker.bootstrap_servers, "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": user, "sasl_plain_password": password, **more,
    }  # fmt: skip


def test_delegation_tokens_log_in_until_they_are_taken_away(tmp_path):
    """The answers are those of Apache Kafka 4.4.0, except that there a token that was taken away works for a while."""
    options = {
        "listen": "kafka+sasl://127.0.0.1:0", "users": sasl_scripts.PASSWORDS,
        "config": {"delegation.token.secret.key": "of all brokers"},
    }  # fmt: skip
    carol = {"user": "carol", "password": "c"}
    with kc.broker.serve(tmp_path / "data", **options) as broker, client.Admin(**by_sasl(broker, **carol)) as admin:
        token = admin.create_delegation_token()
        found = admin.describe_configs([("broker", "1")])
        assert "of all brokers" not in str(found)
        described = admin.describe_delegation_tokens()
        assert [one.token_id for one in described] == [token.token_id]
    with kc.broker.serve(tmp_path / "data", **options) as broker:
        password = base64.b64encode(token.hmac).decode()
        login = by_sasl(broker, token.token_id, password, sasl_scram_tokenauth=True)
        with client.Admin(**login) as admin:
            assert admin.list_topics() == {}
            with pytest.raises(DelegationTokenRequestNotAllowedError):
                admin.create_delegation_token()
        alice = by_sasl(broker, "alice", sasl_scripts.PASSWORDS["alice"])
        with client.Admin(**alice) as admin, pytest.raises(DelegationTokenOwnerMismatchError):
            admin.renew_delegation_token(token.hmac)
        with client.Admin(**by_sasl(broker, **carol)) as admin:
            admin.renew_delegation_token(token.hmac)
            admin.expire_delegation_token(token.hmac)
            assert admin.describe_delegation_tokens() == []
            with pytest.raises(DelegationTokenNotFoundError):
                admin.renew_delegation_token(token.hmac)
        with client.Admin(**login) as admin, pytest.raises(AuthenticationFailed):
            admin.list_topics()


def test_without_a_secret_there_are_no_delegation_tokens():
    with (
        kc.broker.serve(listen="kafka+sasl://127.0.0.1:0", users={"carol": "c"}) as broker,
        client.Admin(**by_sasl(broker, "carol", "c")) as admin,
        pytest.raises(DelegationTokenAuthDisabledError),
    ):
        admin.create_delegation_token()
